meta:
  id: bump
  title: bump, version 3
  file-extension: bump
  license: MIT
  ks-version: 0.11
  endian: le
  encoding: ASCII
doc: |
  Weights as they lie in memory. A file has no names and no shapes: both follow from the header and from config.json,
  which no description of the file can read. So this type reads the header and the table of types, and ends there. Who
  knows config.json reads on with the type model, whose parameters are what the header has no place for. In Python:

      bump = Bump(stream)
      model = Bump.Model(kv_heads, intermediate, has_rope_factors, ckernel, stream, bump, bump)

  Refused, as miniquant's reader does: a file that ends too early or too late, types without a block, rows that are no
  whole number of blocks, aligned dims that do not fit, padding that is not zero. Not checked: the checksum, since no
  SHA-256 can be computed here, and that the positions in a ckernel layout are zeros.
seq:
  - id: magic
    contents: BUMPWGT3
  - id: version
    type: u4
    valid: 3
  - id: model_type
    type: u4
    enum: architecture
    valid:
      in-enum: true
  - id: num_layers
    type: u4
    valid:
      min: 1
  - id: vocab_size
    type: u4
    valid:
      min: 1
  - id: embed_dim
    type: u4
    valid:
      min: 1
  - id: context_len
    type: u4
    valid:
      min: 1
  - id: num_heads
    type: u4
    valid:
      min: 1
  - id: head_dim
    type: u4
    valid:
      min: 1
  - id: aligned_embed_dim
    type: u8
    valid:
      any-of: [(embed_dim + 15) / 16 * 16, embed_dim]
    doc: rounded up, so that a row of float32 takes a multiple of 64 bytes; in a ckernel layout, as it is
  - id: aligned_head_dim
    type: u8
    valid:
      any-of: [(head_dim + 15) / 16 * 16, head_dim]
  - id: aligned_context
    type: u8
    valid:
      expr: _ == (context_len + 15) / 16 * 16
  - id: checksum
    size: 32
    doc: SHA-256 of everything after the header
  - id: reserved
    type: u1
    repeat: expr
    repeat-expr: 32
    valid: 0
  - id: n_types
    type: u4
  - id: types
    type: u1
    enum: tensor_type
    repeat: expr
    repeat-expr: n_types
    valid:
      in-enum: true
instances:
  # made by tools/type_tables.py: sizes
  block_weights:
    value: >-
      [1, 1, 1, 0, 0, 32, 256, 256, 32, 256, 32, 32, 32, 256]
  block_bytes:
    value: >-
      [4, 2, 2, 0, 0, 18, 144, 210, 34, 292, 20, 22, 24, 176]
  # end of the table
types:
  model:
    doc: The tensors, in their order. Its stream stands after the table of types.
    params:
      - id: kv_heads
        type: u4
        doc: num_key_value_heads in config.json; a gpt2 has none, and its num_heads are taken
      - id: intermediate
        type: u4
        doc: intermediate_size, or n_inner
      - id: has_rope_factors
        type: bool
        doc: rope_factors in config.json
      - id: ckernel
        type: bool
        doc: whether bump.layout is ckernel and not aligned
    seq:
      - id: check_parameters
        size: 0
        valid:
          expr: 'kv_heads > 0 and intermediate > 0 and _root.num_heads % kv_heads == 0 and (not ckernel or is_llama) and
                 (_root.n_types == n_tied or (_root.n_types == n_tied + 1 and not ckernel))'
      - id: check_aligned
        size: 0
        valid:
          expr: '_root.aligned_embed_dim == (ckernel ? _root.embed_dim : (_root.embed_dim + 15) / 16 * 16) and
                 _root.aligned_head_dim == (ckernel ? _root.head_dim : (_root.head_dim + 15) / 16 * 16)'
      - id: token_embd
        type: matrix(0, _root.vocab_size, _root.embed_dim, alignment)
      - id: position_embd
        type: matrix(1, _root.context_len, _root.embed_dim, alignment)
        if: is_gpt2 or ckernel
      - id: rope_factors
        type: vector(1, _root.head_dim / 2, alignment)
        if: has_rope_factors
      - id: layers
        type:
          switch-on: kind
          cases:
            0: layer_of_llama(first + _index * per_layer, kv_heads * _root.head_dim, intermediate)
            1: layer_of_gpt2(first + _index * per_layer, intermediate)
            2: layer_of_ckernel(first + _index * per_layer, kv_heads * _root.head_dim, intermediate)
        repeat: expr
        repeat-expr: _root.num_layers
      - id: output_norm
        type: vector(after, _root.embed_dim, alignment)
      - id: output_norm_beta
        type: vector(after + 1, _root.embed_dim, alignment)
        if: is_gpt2 or ckernel
      - id: output
        type: matrix(_root.n_types - 1, _root.vocab_size, _root.embed_dim, alignment)
        if: not tied
      - id: gap
        type: zeros(alignment)
      - id: check_end
        size: 0
        valid:
          expr: _io.eof
    instances:
      is_gpt2:
        value: _root.model_type == architecture::gpt2
      is_llama:
        value: _root.model_type == architecture::llama
      kind:
        value: 'ckernel ? 2 : is_gpt2 ? 1 : 0'
      alignment:
        value: 'ckernel ? 1 : 64'
      first:
        value: 'is_gpt2 or ckernel or has_rope_factors ? 2 : 1'
        doc: The number of the first tensor in the first layer.
      per_layer:
        value: 'ckernel ? 14 : is_gpt2 ? 12 : 15'
      after:
        value: first + per_layer * _root.num_layers
      n_tied:
        value: 'after + (is_gpt2 or ckernel ? 2 : 1)'
        doc: How many tensors there are if the token embedding is the head, too.
      tied:
        value: _root.n_types == n_tied
  zeros:
    params:
      - id: alignment
        type: u4
    seq:
      - id: zero
        type: u1
        repeat: expr
        repeat-expr: (alignment - _io.pos % alignment) % alignment
        valid: 0
  matrix:
    params:
      - id: index
        type: u4
      - id: rows
        type: u8
      - id: width
        type: u8
      - id: alignment
        type: u4
    seq:
      - id: gap
        type: zeros(alignment)
      - id: check_row
        size: 0
        valid:
          expr: width % block_weights == 0
      - id: data
        size: rows * (width / block_weights) * _root.block_bytes[type.to_i]
    instances:
      type:
        value: _root.types[index]
      block_weights:
        value: _root.block_weights[type.to_i]
  vector:
    params:
      - id: index
        type: u4
      - id: length
        type: u8
      - id: alignment
        type: u4
    seq:
      - id: gap
        type: zeros(alignment)
      - id: check_type
        size: 0
        valid:
          expr: type == tensor_type::fp32
      - id: data
        size: 4 * length
    instances:
      type:
        value: _root.types[index]
  layer_of_llama:
    params:
      - id: first
        type: u4
      - id: kv
        type: u4
      - id: intermediate
        type: u4
    seq:
      - id: ln1_gamma
        type: vector(first, embed, 64)
      - id: ln2_gamma
        type: vector(first + 1, embed, 64)
      - id: wq
        type: matrix(first + 2, q, embed, 64)
      - id: bq
        type: vector(first + 3, q, 64)
      - id: wk
        type: matrix(first + 4, kv, embed, 64)
      - id: bk
        type: vector(first + 5, kv, 64)
      - id: wv
        type: matrix(first + 6, kv, embed, 64)
      - id: bv
        type: vector(first + 7, kv, 64)
      - id: wo
        type: matrix(first + 8, embed, q, 64)
      - id: bo
        type: vector(first + 9, embed, 64)
      - id: w_gate
        type: matrix(first + 10, intermediate, embed, 64)
      - id: w_up
        type: matrix(first + 11, intermediate, embed, 64)
      - id: b1
        type: vector(first + 12, 2 * intermediate, 64)
      - id: w_down
        type: matrix(first + 13, embed, intermediate, 64)
      - id: b2
        type: vector(first + 14, embed, 64)
    instances:
      embed:
        value: _root.embed_dim
      q:
        value: _root.num_heads * _root.head_dim
  layer_of_ckernel:
    params:
      - id: first
        type: u4
      - id: kv
        type: u4
      - id: intermediate
        type: u4
    seq:
      - id: ln1_gamma
        type: vector(first, embed, 1)
      - id: ln2_gamma
        type: vector(first + 1, embed, 1)
      - id: wq
        type: matrix(first + 2, q, embed, 1)
      - id: bq
        type: vector(first + 3, q, 1)
      - id: wk
        type: matrix(first + 4, kv, embed, 1)
      - id: bk
        type: vector(first + 5, kv, 1)
      - id: wv
        type: matrix(first + 6, kv, embed, 1)
      - id: bv
        type: vector(first + 7, kv, 1)
      - id: wo
        type: matrix(first + 8, embed, q, 1)
      - id: bo
        type: vector(first + 9, embed, 1)
      - id: w_gate_up
        type: matrix(first + 10, 2 * intermediate, embed, 1)
      - id: b1
        type: vector(first + 11, 2 * intermediate, 1)
      - id: w_down
        type: matrix(first + 12, embed, intermediate, 1)
      - id: b2
        type: vector(first + 13, embed, 1)
    instances:
      embed:
        value: _root.embed_dim
      q:
        value: _root.num_heads * _root.head_dim
  layer_of_gpt2:
    params:
      - id: first
        type: u4
      - id: intermediate
        type: u4
    seq:
      - id: ln1_gamma
        type: vector(first, embed, 64)
      - id: ln1_beta
        type: vector(first + 1, embed, 64)
      - id: ln2_gamma
        type: vector(first + 2, embed, 64)
      - id: ln2_beta
        type: vector(first + 3, embed, 64)
      - id: wqkv
        type: matrix(first + 4, 3 * embed, embed, 64)
      - id: bqkv
        type: vector(first + 5, 3 * embed, 64)
      - id: wo
        type: matrix(first + 6, embed, embed, 64)
      - id: bo
        type: vector(first + 7, embed, 64)
      - id: w_up
        type: matrix(first + 8, intermediate, embed, 64)
      - id: b1
        type: vector(first + 9, intermediate, 64)
      - id: w_down
        type: matrix(first + 10, embed, intermediate, 64)
      - id: b2
        type: vector(first + 11, embed, 64)
    instances:
      embed:
        value: _root.embed_dim
enums:
  architecture:
    1: llama
    2: gpt2
    3: qwen2
  tensor_type: # those whose blocks are described; INT8 and INT4 have numbers, too
    # made by tools/type_tables.py: enum
    0: fp32 # a weight in 4 bytes
    1: bf16 # a weight in 2 bytes
    2: fp16 # a weight in 2 bytes
    5: q4_0 # 32 weights in 18 bytes
    6: q4_k # 256 weights in 144 bytes
    7: q6_k # 256 weights in 210 bytes
    8: q8_0 # 32 weights in 34 bytes
    9: q8_k # 256 weights in 292 bytes
    10: q4_1 # 32 weights in 20 bytes
    11: q5_0 # 32 weights in 22 bytes
    12: q5_1 # 32 weights in 24 bytes
    13: q5_k # 256 weights in 176 bytes
    # end of the table
