"""Sounds that a recogniser of English was not made for, from nothing: music, and other languages by espeak-ng."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError

#: Plain sentences by the name of espeak-ng's voice.
SENTENCES = {
    "de": (
        "Der Zug nach Hamburg fährt heute von einem anderen Gleis ab.",
        "Meine Schwester hat gestern den ganzen Tag im Garten gearbeitet.",
        "Können Sie mir bitte sagen, wo die Bibliothek ist?",
        "Im Winter gehen wir oft im Wald spazieren.",
        "Das Wasser im See war kälter, als wir gedacht hatten.",
        "Er schrieb einen langen Brief und schickte ihn nie ab.",
    ),
    "fr": (
        "Le train pour Lyon part ce matin d'un autre quai.",
        "Ma sœur a travaillé toute la journée dans le jardin.",
        "Pouvez-vous me dire où se trouve la bibliothèque ?",
        "En hiver nous allons souvent nous promener dans la forêt.",
        "L'eau du lac était plus froide que nous ne le pensions.",
        "Il a écrit une longue lettre et ne l'a jamais envoyée.",
    ),
    "es": (
        "El tren para Sevilla sale hoy de otra vía.",
        "Mi hermana trabajó ayer todo el día en el jardín.",
        "¿Puede decirme dónde está la biblioteca, por favor?",
        "En invierno paseamos muchas veces por el bosque.",
        "El agua del lago estaba más fría de lo que pensábamos.",
        "Escribió una carta muy larga y nunca la envió.",
    ),
    "it": (
        "Il treno per Milano parte oggi da un altro binario.",
        "Mia sorella ha lavorato tutto il giorno in giardino.",
        "Può dirmi dove si trova la biblioteca, per favore?",
        "D'inverno andiamo spesso a passeggiare nel bosco.",
        "L'acqua del lago era più fredda di quanto pensassimo.",
        "Scrisse una lunga lettera e non la spedì mai.",
    ),
    "fi": (
        "Juna Tampereelle lähtee tänään toiselta raiteelta.",
        "Siskoni teki eilen koko päivän töitä puutarhassa.",
        "Voisitteko kertoa minulle, missä kirjasto on?",
        "Talvella kävelemme usein metsässä.",
        "Järven vesi oli kylmempää kuin luulimme.",
        "Hän kirjoitti pitkän kirjeen eikä koskaan lähettänyt sitä.",
    ),
}
#: Two ways of speaking for every voice.
VARIANTS = ("+m3", "+f2")
RATE = 16_000


def has_espeak() -> bool:
    """Whether espeak-ng is installed."""
    return shutil.which("espeak-ng") is not None


def speak(text: str, voice: str = "en-us") -> Audio:
    """A text read aloud by espeak-ng."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "speech.wav")
        command = ["espeak-ng", "-v", voice, "-w", str(path), "--", text or " "]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except FileNotFoundError:
            raise InputError("speech is synthesised by espeak-ng, which is not installed: install it") from None
        except subprocess.CalledProcessError as error:
            message = error.stderr.decode(errors="replace").strip()
            raise InputError(f"espeak-ng could not read {text!r} in the voice {voice!r}: {message}") from None
        return Audio.read(path).resample(RATE)


def music(rng: np.random.Generator, *, seconds: float = 5.0) -> Audio:
    """Chords with overtones that die away, a bass, a melody and drums, of a random key and tempo."""
    times = np.arange(int(seconds * RATE)) / RATE
    beat, key = float(rng.uniform(0.3, 0.6)), float(rng.uniform(45, 57))
    sound = np.zeros(len(times))
    progression = rng.choice([0, 2, 4, 5, 7, 9], 4)
    for number in range(int(seconds / beat)):
        root = key + float(progression[number // 4 % 4])
        notes = [(root - 12, 0.3), (root + float(rng.choice([12, 14, 16, 19, 21, 24])), 0.25)]
        if number % 2 == 0:
            notes += [(root + interval, 0.15) for interval in (0, 4, 7)]
        since = times - number * beat
        for note, loudness in notes:
            hz = 440 * 2 ** ((note - 69) / 12)
            fade = np.where(since >= 0, np.exp(-3 * np.clip(since, 0, None)), 0)
            tones = sum(np.sin(2 * np.pi * hz * overtone * times) / overtone for overtone in range(1, 6))
            sound += loudness * fade * tones
        drum = np.where(since >= 0, np.exp(-40 * np.clip(since, 0, None)), 0)
        sound += 0.3 * drum * rng.standard_normal(len(times))
    return Audio((0.3 * sound / np.abs(sound).max()).astype(np.float32), RATE)
