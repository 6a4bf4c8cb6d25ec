"""`oomdoctor run`: a command passed through, its output kept, its death explained."""
