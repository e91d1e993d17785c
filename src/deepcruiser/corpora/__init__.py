"""Corpora of recorded inputs, recognised by what is found at a path.

A folder is one of these, the first that fits:

    wav.scp           Kaldi, with its text and segments where there are any; a command in it is never run
    transcripts.tsv   file name, tab, text; no header
    *.trans.txt       LibriSpeech, at any depth: id, space, text; the audio lies beside it and is named by the id
    audio files       at any depth, without texts
    .npy arrays       at any depth, without texts

and a file one of these:

    .json .jsonl .ndjson   NeMo: a JSON object a line with audio_filepath, and text, offset and duration
    .tsv                   Common Voice: columns path and sentence, the files in clips/ beside it
    .csv                   a column wav_filename, path, file or audio and a column transcript, sentence or text
    audio or .npy          a corpus of one

Folders are read in sorted order, lists in their own. A relative path is relative to the list that names it.
Texts are kept as they are written, but LibriSpeech's, which are all upper case, are lowered. An id is the
corpus' own, or else the path without its suffix. Hidden files and links to folders are passed over.
"""

from deepcruiser.corpora.corpus import Corpus, Sample
from deepcruiser.corpora.read import read_corpus

__all__ = ["Corpus", "Sample", "read_corpus"]
