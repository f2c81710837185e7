"""The lessons of the course: a folder for each lab, named by its subject.

``COURSE`` is the order of the labs, and the only place where a lab has a number: its place in the tuple.
"""

COURSE = (
    "five_minutes",
    "bytes",
    "what_a_model_is",
    "pickle",
    "safetensors",
    "checkpoints",
    "int8",
    "int4",
    "container",
    "writer",
    "reader",
    "verify",
    "size",
    "deliverable",
    "gguf",
    "gguf_blocks",
    "claims",
    "q4_1_bridge",
    "awq",
    "gptq",
    "smoothquant",
    "k_quants",
    "bump",
    "hostile_files",
    "importance_matrix",
    "float4",
    "kv_cache",
    "rotation",
    "integer_products",
    "mixed_precision",
    "qat",
)
