-- The held end of a stream also counts its characters that are stored already.
UPDATE executions SET redaction_tails = (
  SELECT jsonb_object_agg(stream, jsonb_build_object('text', held, 'stored', 0)) FROM jsonb_each(redaction_tails) AS tails (stream, held)
) WHERE redaction_tails <> '{}';
