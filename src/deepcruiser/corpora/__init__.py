"""Corpora of recorded inputs, in formats that are recognised from the files at a path.

A folder is the first of these that fits:

    wav.scp           Kaldi, with `text` and `segments` if they exist; commands in it are never run
    feats.scp         features in Kaldi's archives, with `text` if it exists
    transcripts.tsv   file name, tab, text; no header
    *.trans.txt       LibriSpeech, at any depth: id, space, text; the audio file beside it is named by the id
    audio files       at any depth, without texts
    .npy arrays       at any depth, without texts

A file is one of these:

    .json .jsonl .ndjson   NeMo: a JSON object per line with audio_filepath, text, offset and duration;
                           or texts: an object per line with text and label
    .tsv                   Common Voice: columns path and sentence, the files in clips/ beside it
    .csv                   a column wav_filename, path, file or audio and a column transcript, sentence, text or label;
                           or texts: a column text or sentence and, if there are labels, a column label
    .txt                   a text in each line
    .ark .scp              features in one of Kaldi's archives, or a list of those in several, with `text` beside it
    audio or .npy          a corpus of one

Folders are read in sorted order, lists in their own order. A relative path is relative to the list that contains it.
Texts are kept as written, except that LibriSpeech's upper case becomes lower case. An id is the corpus' own, or the
path without its suffix. Hidden files and links to folders are skipped.
"""
