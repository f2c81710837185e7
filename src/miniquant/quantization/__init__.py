"""Numbers to integers and back: symmetric quantization, packing, grids, schemes, specs. Knows no format."""
