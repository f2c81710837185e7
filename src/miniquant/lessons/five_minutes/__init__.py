"""The exercises of the lab five minutes."""
