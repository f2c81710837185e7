meta:
  id: gguf_lite
  title: GGUF-lite, version 1
  file-extension: gguf-lite
  license: MIT
  ks-version: 0.11
  endian: le
  encoding: UTF-8
doc: |
  The container of the course's assignment: header, key=value lines, descriptors, data.

  Refused, as miniquant's reader does: a file that ends too early, lines that are not key=value, unknown types, a bad
  shape, and, when the scales are asked for, one that is not finite. Not checked, because an expression here cannot look
  through a list: keys and names that occur twice, and tensors that overlap.
seq:
  - id: magic
    contents: TFLG
  - id: version
    type: u4
    valid: 1
  - id: n_tensors
    type: u4
  - id: metadata_len
    type: u4
  - id: metadata
    type: lines
    size: metadata_len
  - id: descriptors
    type: descriptor
    repeat: expr
    repeat-expr: n_tensors
  - id: invoke_data_start # an instance is computed when it is asked for first; this asks for it here
    size: 0
    if: data_start > 0
  - id: tensors
    type: tensor(descriptors[_index])
    repeat: expr
    repeat-expr: n_tensors
instances:
  data_start:
    value: _io.pos
    doc: The byte from which the offsets of the tensors count.
types:
  lines:
    seq:
      - id: lines
        type: line
        terminator: 0x0a
        eos-error: false
        repeat: eos
  line:
    seq:
      - id: key
        type: str
        terminator: 0x3d
        valid:
          expr: _.length > 0
      - id: value
        type: str
        size-eos: true
        valid:
          expr: (key != "dims_order" or _ == "out,in") and (key != "group_size" or _ == "64")
  dim:
    params:
      - id: weights_before
        type: u8
      - id: nonzero_before
        type: u8
        doc: the product of the dims before this one, a 0 left out
    seq:
      - id: value
        type: u4
        valid:
          expr: 'nonzero_before <= 1152921504606846975 / (_ == 0 ? 1 : _)'
        doc: so that the product of the dims stays below 2 to the power of 60
    instances:
      weights:
        value: weights_before * value
      nonzero:
        value: 'nonzero_before * (value == 0 ? 1 : value)'
  descriptor:
    seq:
      - id: name_len
        type: u2
        valid:
          min: 1
      - id: name
        type: str
        size: name_len
      - id: n_dims
        type: u1
        valid:
          max: 64
      - id: dims
        type: 'dim(_index == 0 ? 1 : dims[_index - 1].weights, _index == 0 ? 1 : dims[_index - 1].nonzero)'
        repeat: expr
        repeat-expr: n_dims
        doc: out first, as PyTorch has it
      - id: dtype
        type: u1
        enum: dtype
        valid:
          in-enum: true
      - id: check_shape
        size: 0
        valid:
          expr: not has_scales or (n_dims == 2 and dims[1].value % group_size == 0)
      - id: offset
        type: u8
        doc: from data_start
    instances:
      has_groups:
        value: dtype == dtype::q4_per_group_64
      has_scales:
        value: dtype == dtype::q8_per_channel or has_groups
      group_size:
        value: 'has_groups ? 64 : 1'
        doc: The length of a row is a multiple of it.
      weights:
        value: 'n_dims == 0 ? 1 : dims.last.weights'
      n_scales:
        value: 'not has_scales ? 0 : dtype == dtype::q8_per_channel ? dims[0].value : weights / group_size'
      value_bytes:
        value: 'weights * (dtype == dtype::f32 ? 32 : dtype == dtype::f16 ? 16 : has_groups ? 4 : 8) / 8'
      n_bytes:
        value: 2 * n_scales + value_bytes
  tensor:
    params:
      - id: descriptor
        type: descriptor
    seq:
      - id: check_place
        size: 0
        valid:
          expr: descriptor.offset <= room and descriptor.n_bytes <= room - descriptor.offset
    instances:
      room:
        value: _root._io.size - _root.data_start
      start:
        value: _root.data_start + descriptor.offset
      scales:
        io: _root._io
        pos: start
        type: u2
        repeat: expr
        repeat-expr: descriptor.n_scales
        if: descriptor.n_scales > 0
        valid:
          expr: (_ & 0x7c00) != 0x7c00
        doc: the bits of a float16 each; infinities and NaNs are refused
      values:
        io: _root._io
        pos: start + 2 * descriptor.n_scales
        size: descriptor.value_bytes
        if: descriptor.value_bytes > 0
enums:
  dtype:
    0: f32
    1: f16
    2:
      id: q8_per_channel
      doc: a float16 scale for each row, then a signed byte for each weight
    3:
      id: q4_per_group_64
      doc: a float16 scale for each 64 weights of a row, then signed 4-bit integers, two a byte, low nibble first
