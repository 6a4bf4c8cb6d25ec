"""Words of a command line to jobs: folders, archives, object stores, lists, exports of schedulers."""
