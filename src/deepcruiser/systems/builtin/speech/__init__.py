"""The built-in recogniser: English speech to text, with its weights, language model and recordings."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
WEIGHTS, LANGUAGE_MODEL = DATA / "english.safetensors", DATA / "english.kenlm"

#: Recordings of synthetic voices with their texts: some of the kind it was trained on, and new ones.
PROFILE, SEEDS = DATA / "demo" / "profile", DATA / "demo" / "seeds"
