"""Record batches, magic 2: headers, checksums, codecs, records."""
