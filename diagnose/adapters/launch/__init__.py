"""Commands to what they launch: launcher, program, flags, environment."""
