"""The bundled reranker's weights: fitted on labelled questions, and measured on questions that the fit hasn't seen."""
