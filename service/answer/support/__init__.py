"""Whether the sources that a sentence cites say it too, without a model: figures, polarity, words and vectors."""
