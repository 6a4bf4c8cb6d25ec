"""Shell scripts read as bash reads them: words, variables, branches, here-documents, #SBATCH lines. Nothing is run."""
