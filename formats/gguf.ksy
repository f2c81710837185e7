meta:
  id: gguf
  title: GGUF, versions 2 and 3, little-endian
  file-extension: gguf
  license: MIT
  ks-version: 0.11
  endian: le
  encoding: UTF-8
doc: |
  Named tensors and typed metadata, as llama.cpp loads them: header, key-values, tensor infos, padding, data.

  Refused, as miniquant's reader does: a file that ends too early, unknown types, a bad alignment, dims or offset.
  Not checked, because an expression here cannot look through a list: keys and names that occur twice, tensors that
  overlap, and which letters a key has. The data of a tensor are bytes; its dtype says what a block of them holds.
doc-ref: ggml/docs/gguf.md and gguf_init_from_file in ggml/src/gguf.cpp
seq:
  - id: magic
    contents: GGUF
  - id: version
    type: u4
    valid:
      any-of: [2, 3]
  - id: n_tensors
    type: u8
    valid:
      max: _io.size
  - id: n_kv
    type: u8
    valid:
      max: _io.size
  - id: metadata
    type: 'pair(_index == 0 ? 32 : metadata[_index - 1].alignment)'
    repeat: expr
    repeat-expr: n_kv
  - id: infos
    type: info
    repeat: expr
    repeat-expr: n_tensors
  - id: invoke_data_start # an instance is computed when it is asked for first; this asks for it here
    size: 0
    if: data_start > 0
  - id: tensors
    type: tensor(infos[_index])
    repeat: expr
    repeat-expr: n_tensors
instances:
  alignment:
    value: 'n_kv == 0 ? 32 : metadata.last.alignment'
  end_of_infos:
    value: _io.pos
  data_start:
    value: (end_of_infos + alignment - 1) / alignment * alignment
    doc: The byte from which the offsets of the tensors count. Nothing is added if the infos end at a multiple.
  gap:
    pos: end_of_infos
    size: data_start - end_of_infos
    if: data_start <= _io.size
  # made by tools/type_tables.py: sizes
  block_weights:
    value: >-
      [1, 1, 32, 32, 0, 0, 32, 32, 32, 32, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 32, 256, 256,
      256, 1, 1, 1, 1, 1, 256, 1, 0, 0, 0, 256, 256, 0, 0, 0, 32, 64, 128, 64]
  block_bytes:
    value: >-
      [4, 2, 18, 20, 0, 0, 22, 24, 34, 36, 84, 110, 144, 176, 210, 292, 66, 74, 98, 50, 18, 110, 82, 136,
      1, 2, 4, 8, 8, 56, 2, 0, 0, 0, 54, 66, 0, 0, 0, 17, 36, 18, 18]
  # end of the table
types:
  text:
    seq:
      - id: length
        type: u8
        doc: in bytes
      - id: value
        type: str
        size: length
  truth:
    seq:
      - id: value
        type: u1
        valid:
          max: 1
  pair:
    params:
      - id: alignment_before
        type: u4
    seq:
      - id: length
        type: u8
        valid:
          min: 1
          max: 65535
      - id: key
        type: str
        size: length
      - id: type
        type: u4
        enum: value_type
        valid:
          in-enum: true
      - id: value
        type:
          switch-on: type
          cases:
            value_type::uint8: u1
            value_type::int8: s1
            value_type::uint16: u2
            value_type::int16: s2
            value_type::uint32: u4
            value_type::int32: s4
            value_type::float32: f4
            value_type::bool: truth
            value_type::string: text
            value_type::array: array
            value_type::uint64: u8
            value_type::int64: s8
            value_type::float64: f8
      - id: check_alignment
        size: 0
        if: key == "general.alignment"
        valid:
          expr: type == value_type::uint32 and alignment != 0 and (alignment & (alignment - 1)) == 0
    instances:
      alignment:
        value: 'key == "general.alignment" and type == value_type::uint32 ? value.as<u4> : alignment_before'
        doc: What the places of the tensors are multiples of, as far as the keys up to this one say it.
  array:
    seq:
      - id: type
        type: u4
        enum: value_type
        valid:
          any-of:
            - value_type::uint8
            - value_type::int8
            - value_type::uint16
            - value_type::int16
            - value_type::uint32
            - value_type::int32
            - value_type::float32
            - value_type::bool
            - value_type::string
            - value_type::uint64
            - value_type::int64
            - value_type::float64
      - id: length
        type: u8
        valid:
          max: _io.size
      - id: values
        repeat: expr
        repeat-expr: length
        type:
          switch-on: type
          cases:
            value_type::uint8: u1
            value_type::int8: s1
            value_type::uint16: u2
            value_type::int16: s2
            value_type::uint32: u4
            value_type::int32: s4
            value_type::float32: f4
            value_type::bool: truth
            value_type::string: text
            value_type::uint64: u8
            value_type::int64: s8
            value_type::float64: f8
  dim:
    params:
      - id: weights_before
        type: u8
      - id: nonzero_before
        type: u8
        doc: the product of the dims before this one, a 0 left out
    seq:
      - id: value
        type: u8
        valid:
          expr: 'nonzero_before <= 1152921504606846975 / (_ == 0 ? 1 : _)'
        doc: so that the product of the dims stays below 2 to the power of 60
    instances:
      weights:
        value: weights_before * value
      nonzero:
        value: 'nonzero_before * (value == 0 ? 1 : value)'
  info:
    seq:
      - id: length
        type: u8
        valid:
          max: 64
      - id: name
        type: str
        size: length
      - id: n_dims
        type: u4
        valid:
          max: 4
      - id: dims
        type: 'dim(_index == 0 ? 1 : dims[_index - 1].weights, _index == 0 ? 1 : dims[_index - 1].nonzero)'
        repeat: expr
        repeat-expr: n_dims
        doc: the row's width first, the reverse of PyTorch's order
      - id: type
        type: u4
        enum: tensor_type
        valid:
          in-enum: true
      - id: check_row
        size: 0
        valid:
          expr: width % block_weights == 0
      - id: offset
        type: u8
        valid:
          expr: _ % _root.alignment == 0
        doc: from data_start
    instances:
      width:
        value: 'n_dims == 0 ? 1 : dims[0].value'
      weights:
        value: 'n_dims == 0 ? 1 : dims.last.weights'
      block_weights:
        value: _root.block_weights[type.to_i]
      n_bytes:
        value: weights / block_weights * _root.block_bytes[type.to_i]
  tensor:
    params:
      - id: info
        type: info
    seq:
      - id: check_place
        size: 0
        valid:
          expr: info.n_bytes == 0 or (info.offset <= room and info.n_bytes <= room - info.offset)
    instances:
      room:
        value: _root._io.size - _root.data_start
      data:
        io: _root._io
        pos: _root.data_start + info.offset
        size: info.n_bytes
        if: info.n_bytes > 0
enums:
  value_type:
    0: uint8
    1: int8
    2: uint16
    3: int16
    4: uint32
    5: int32
    6: float32
    7: bool
    8: string
    9: array
    10: uint64
    11: int64
    12: float64
  tensor_type:
    # made by tools/type_tables.py: enum
    0: f32 # a weight in 4 bytes
    1: f16 # a weight in 2 bytes
    2: q4_0 # 32 weights in 18 bytes
    3: q4_1 # 32 weights in 20 bytes
    6: q5_0 # 32 weights in 22 bytes
    7: q5_1 # 32 weights in 24 bytes
    8: q8_0 # 32 weights in 34 bytes
    9: q8_1 # 32 weights in 36 bytes
    10: q2_k # 256 weights in 84 bytes
    11: q3_k # 256 weights in 110 bytes
    12: q4_k # 256 weights in 144 bytes
    13: q5_k # 256 weights in 176 bytes
    14: q6_k # 256 weights in 210 bytes
    15: q8_k # 256 weights in 292 bytes
    16: iq2_xxs # 256 weights in 66 bytes
    17: iq2_xs # 256 weights in 74 bytes
    18: iq3_xxs # 256 weights in 98 bytes
    19: iq1_s # 256 weights in 50 bytes
    20: iq4_nl # 32 weights in 18 bytes
    21: iq3_s # 256 weights in 110 bytes
    22: iq2_s # 256 weights in 82 bytes
    23: iq4_xs # 256 weights in 136 bytes
    24: i8 # a weight in 1 byte
    25: i16 # a weight in 2 bytes
    26: i32 # a weight in 4 bytes
    27: i64 # a weight in 8 bytes
    28: f64 # a weight in 8 bytes
    29: iq1_m # 256 weights in 56 bytes
    30: bf16 # a weight in 2 bytes
    34: tq1_0 # 256 weights in 54 bytes
    35: tq2_0 # 256 weights in 66 bytes
    39: mxfp4 # 32 weights in 17 bytes
    40: nvfp4 # 64 weights in 36 bytes
    41: q1_0 # 128 weights in 18 bytes
    42: q2_0 # 64 weights in 18 bytes
    # end of the table
