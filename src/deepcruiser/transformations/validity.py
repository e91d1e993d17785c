"""placeholder"""


class Validity: ...
