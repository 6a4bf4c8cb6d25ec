"""Shell scripts read as bash, cmd or PowerShell read them: words, variables, branches, here-documents, #SBATCH lines. Nothing is run."""
