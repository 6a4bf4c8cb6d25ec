"""All documents of one job together: which files they name, which of them wins, how the job was started."""
