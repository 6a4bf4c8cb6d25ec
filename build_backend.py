"""hatchling as the build backend; on a Python that is too old, just enough of one for pip to say so in a sentence of its own.

pip runs the backend before it compares Requires-Python, so every Python 3 has to be able to read this file.
"""

import os
import sys

#: `requires-python` of pyproject.toml.
OLDEST = (3, 11)

if sys.version_info >= OLDEST:
    from hatchling.build import *  # noqa: F403
else:

    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        """Metadata that hold no more than what pip refuses to install."""
        folder = "oomdoctor-0.dist-info"
        os.makedirs(os.path.join(metadata_directory, folder))
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: oomdoctor\nVersion: 0\nRequires-Python: >={}.{}\n".format(*OLDEST))
        return folder

    prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

    def build_wheel(*arguments, **settings):
        """What other tools call, which do not ask for metadata first."""
        sys.exit("oomdoctor needs Python {}.{} or newer, and this is {}.{}.".format(*(OLDEST + sys.version_info[:2])))

    build_editable = build_sdist = build_wheel
