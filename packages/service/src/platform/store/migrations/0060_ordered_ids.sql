-- Ids that statements make sort by time to less than a microsecond (RFC 9562, section 6.2, method 3), because deliveries and fires that
-- wait start in the order of their ids. The first 60 bits are the time in 4096ths of a millisecond, with the version between them.
CREATE OR REPLACE FUNCTION new_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT (
    overlay(lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '7' FROM 13 FOR 0)
    || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
$$;
