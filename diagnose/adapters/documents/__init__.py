"""Opens a text of unknown form as a document: form, framework, leaves, and the programs that its commands start."""
