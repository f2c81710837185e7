"""Whether a size that a model card states is that of the file."""

from decimal import Decimal

from ...lab import Exercise, Mistake, edit


def size_is_true(said, n_bytes):
    """Whether a stated size is that of a file, to the last digit that it
    states.

    said: str, a number (digits, perhaps with a point), a blank and "B",
        "kB", "MB" or "GB", such as "1.25 kB" or "1500 B"; a kB is
        1000 B, an MB 1000 kB, a GB 1000 MB
    n_bytes: int, the size of the file
    ->   True or False

    n_bytes may be off by half a unit of the last stated place, also if a
    zero is stated there: 1.25 kB is 1250 bytes, off by 5 at most, and 1500
    B is 1500 bytes, off by half a byte at most. A case where it is off by
    just that much is not in the check.
    """
    number, unit = said.split()
    factor = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}[unit]
    decimals = len(number.partition(".")[2])
    half = factor * 10**-decimals / 2
    return abs(float(number) * factor - n_bytes) <= half


def oracle(said, n_bytes):
    """In decimal arithmetic, which is exact."""
    number, unit = said.split(" ")
    factor = Decimal(10) ** (3 * ["B", "kB", "MB", "GB"].index(unit))
    digit = Decimal(10) ** Decimal(number).as_tuple().exponent
    return abs(Decimal(number) * factor - n_bytes) * 2 <= digit * factor


def cases(random):
    """True sizes and lies of every unit, with two decimals, one and none, at both ends and just outside."""
    made = [("768 B", 768), ("768 B", 769), ("768 B", 767), ("0 B", 0), ("0 B", 1), ("1.25 kB", 1250), ("1.25 kB", 1246)]
    made += [("1.25 kB", 1254), ("1.25 kB", 1256), ("1.25 kB", 1244), ("1.25 kB", 1280), ("8.011 kB", 8011), ("1.25 MB", 1250)]
    made += [("1.2 kB", 1238), ("1.2 kB", 1262), ("1 kB", 1400), ("1 kB", 1600), ("14.00 MB", 14_004_000)]
    made += [("14.00 MB", 14_006_000), ("14.00 MB", 14_679_000), ("2.35 GB", 2_354_000_000), ("2.35 GB", 2_356_000_000)]
    made += [("1 B", 1_234_567), ("1.23 B", 1_234_567), ("12.50 kB", 12_501)]
    made += [("1.2503 kB", 1250), ("1.2503 B", 1), ("1.2500 kB", 1250), ("0.0007 MB", 720)]
    made += [("1 kB", 501), ("0.1 kB", 149), ("2.3 MB", 2_349_000), ("2345678900 B", 2_345_678_901)]
    made += [("1.250 kB", 1250), ("1.250 kB", 1251), ("1500 B", 1500), ("1500 B", 1501), ("100 kB", 100_600)]
    made += [("1500 kB", 1_500_400), ("0.00 kB", 4), ("0.00 kB", 6), ("0 MB", 400_000), ("1.25 MB", 1_255_400)]
    made += [("1.25 MB", 1_254_999), ("1.25 MB", 1_255_001), ("1.25 MB", 1_245_001), ("1.25 MB", 1_244_999)]
    made += [("2.3456789 GB", 2_345_678_940), ("2.3456789 GB", 2_345_678_960), ("12 GB", 12_400_000_000)]
    drawn = random.integers(1000, 999_990, 4).tolist()
    return made + [(f"{n / 1000:.2f} kB", n + by) for n, by in zip(drawn, (0, 0, 30, -30))]


def traits(said, n_bytes):
    """What is special about a stated size."""
    number, unit = said.split(" ")
    factor = Decimal(10) ** (3 * ["B", "kB", "MB", "GB"].index(unit))
    decimals, stated = len(number.partition(".")[2]), Decimal(number) * factor
    return {
        "the number has no decimals": decimals == 0,
        "the number has more than two decimals": decimals > 2,
        "the number has no decimals, or ends in 0": decimals == 0 or number.endswith("0"),
        "the unit is B": unit == "B",
        "the unit is kB": unit == "kB",
        "the unit is GB": unit == "GB",
        "the stated size is 0": stated == 0,
        "the file is larger than stated": n_bytes > stated,
        "the file is smaller than stated": n_bytes < stated,
        "the file has exactly as many bytes as stated": n_bytes == stated,
        "the stated number is 1000 or more, or less than 1": not 1 <= Decimal(number) < 1000,
    }


EXERCISE = Exercise(
    goal="Say whether a size such as `1.25 kB` on a model card is true of a file of so many bytes.",
    reference=size_is_true, oracle=oracle, cases=cases, minutes=7, difficulty="core", traits=traits,
    hints=(
        "A card rounds, so equality is too strict. A number with two decimals may be off by less than one with none.",
        "`said.split()` gives the number and the unit, and `number.partition(\".\")` gives what comes after the point: as many digits as there are decimals.",
    ),
    why="a card that only has a line with a size may say anything; now it must say the truth, as exactly as it claims to.",
    mistakes=(
        Mistake("an exact comparison", edit("<= half", "== 0"),
            cause="The stated size is rounded, and here the file must have exactly that many bytes.",
            cure="Allow half of the last stated digit.", see="`False` for a size that was rounded"),
        Mistake("a kB of 1024", edit("1000,", "1024,").edit("1000**2", "1024**2").edit("1000**3", "1024**3"),
            cause="With 1024 in place of 1000, true sizes are off by more than their last digit.",
            cure="A kB is 1000 bytes here, an MB 1000 kB.", see="`False` for every true size in kB"),
        Mistake("the unit is ignored", edit("factor = {", "factor = 1 or {"),
            cause="The number was compared with the bytes as if every unit were B.",
            cure="Multiply the number by its unit.", see="`False` for every true size in kB, MB or GB"),
        Mistake("a whole digit", edit("10**-decimals / 2", "10**-decimals"),
            cause="The size may be off by a whole last digit, and 1.25 kB would stand for 1240 bytes, too.",
            cure="Allow half of the last digit.", see="`True` for 1256 bytes and `1.25 kB`"),
        Mistake("always two decimals", edit('len(number.partition(".")[2])', "2"),
            cause="Two decimals were assumed. `1.2 kB` claims less than `1.20 kB`, and `768 B` has none.",
            cure="Count the digits after the point.", see="`False` for a true size with fewer decimals"),
        Mistake("ten percent", edit("<= half", "<= 0.1 * n_bytes"),
            cause="Sizes within ten percent pass, and the number has more digits than that.",
            cure="Derive the tolerance from the last stated digit.", see="`True` for 1280 bytes and `1.25 kB`"),
        Mistake("too small a size only", edit("abs(float(number) * factor - n_bytes)", "n_bytes - float(number) * factor"),
            cause="Only files that are larger than stated are refused.",
            cure="Take the absolute value of the difference.", see="`True` for files that are smaller than stated"),
        Mistake("too large a size only", edit("abs(float(number) * factor - n_bytes)", "float(number) * factor - n_bytes"),
            cause="Only files that are smaller than stated are refused.",
            cure="Take the absolute value of the difference.", see="`True` for files that are larger than stated"),
    ),
)
