-- A push asks which branches of its repository factories follow.
CREATE INDEX factory_sources_by_repository ON factory_sources (regexp_replace(lower(owner || '/' || repo), '(\.git)+$', ''));
CREATE INDEX factory_sources_by_place ON factory_sources (found_at) WHERE found_at IS NOT NULL;
