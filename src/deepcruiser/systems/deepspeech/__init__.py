"""Recognisers of Mozilla DeepSpeech and Coqui STT."""
