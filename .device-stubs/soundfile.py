class SoundFileError(Exception): pass
class SoundFile: pass
