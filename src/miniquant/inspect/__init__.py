"""Pictures of bytes: hexview, ribbon, nibbles, microscope, as text and HTML."""
