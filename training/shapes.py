"""The networks that can be trained: the built-in one, and one in the shape of Mozilla DeepSpeech."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepcruiser.systems.builtin.speech.network import ALPHABET, Recogniser

#: 20 ms frames with nine on either side.
CONTEXT = 9
WIDTH = 2048
CLIP = 20.0


class DeepSpeechShape(nn.Module):
    """26 cepstral coefficients with context, three dense layers, one LSTM of 2048, a dense layer, 29 outputs.

    For experiments at the paper's size of the state. It reads the log-mel frames of `log_mel`, every second one, of
    which it takes the first 26 coefficients of the cosine transform.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.ModuleList(nn.Linear(size, WIDTH) for size in (26 * (2 * CONTEXT + 1), WIDTH, WIDTH))
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.last = nn.Linear(WIDTH, WIDTH)
        self.outward = nn.Linear(WIDTH, len(ALPHABET) + 1)
        self.dropout, self.early_dropout = nn.Dropout(0.0), nn.Dropout(0.0)
        places = (torch.arange(80) + 0.5) * torch.pi / 80
        self.cosines: Tensor
        self.register_buffer("cosines", torch.cos(places[:, None] * torch.arange(26)) / 80**0.5, persistent=False)

    @staticmethod
    def steps_of(counts: Tensor) -> Tensor:
        return (counts + 1) // 2

    def scores(self, frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        cepstra = frames[:, ::2] @ self.cosines
        x = functional.pad(cepstra, (0, 0, CONTEXT, CONTEXT)).unfold(1, 2 * CONTEXT + 1, 1).flatten(2)
        for layer in self.dense:
            x = self.early_dropout(functional.relu(layer(x)).clamp(max=CLIP))
        x = self.dropout(self.lstm(x)[0])
        scores = self.outward(functional.relu(self.last(x)).clamp(max=CLIP))
        return scores, scores


SHAPES: dict[str, Callable[[], nn.Module]] = {"english": Recogniser, "deepspeech": DeepSpeechShape}
