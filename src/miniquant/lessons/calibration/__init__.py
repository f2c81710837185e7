"""The exercises of the lab calibration."""
