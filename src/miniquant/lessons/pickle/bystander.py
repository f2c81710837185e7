"""A module that stands on no list: the check of ``load_restricted`` notices when it is imported, and when it is called."""

CALLS: list[str] = []


def called() -> None:
    """What a pickle may ask for: the call is written down."""
    CALLS.append("called")
