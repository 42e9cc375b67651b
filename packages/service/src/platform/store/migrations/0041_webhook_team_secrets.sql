-- Webhooks whose secret is one of the team's.

ALTER TABLE webhooks
  -- The secret of the team that senders prove. NULL: the webhook has a secret of its own in sealed_secret, or none.
  ADD COLUMN team_secret_id uuid REFERENCES stored_secrets,
  -- Why the service disabled the webhook. NULL: it is enabled, or a person disabled it.
  ADD COLUMN disabled_reason text,
  DROP CONSTRAINT webhooks_enabled_has_secret,
  ADD CONSTRAINT webhooks_enabled_has_secret CHECK (NOT enabled OR sealed_secret IS NOT NULL OR team_secret_id IS NOT NULL),
  ADD CONSTRAINT webhooks_one_secret CHECK (sealed_secret IS NULL OR team_secret_id IS NULL);
CREATE INDEX webhooks_team_secret ON webhooks (team_secret_id) WHERE team_secret_id IS NOT NULL;

-- Makes all processes read the webhooks of a changed secret again, and disables those of a deleted one.
CREATE FUNCTION follow_secret_of_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE webhooks SET team_secret_id = NULL, enabled = false, disabled_reason = 'the secret ' || OLD.name || ' of the team was deleted',
      version = version + 1, updated_at = clock_timestamp()
    WHERE team_secret_id = OLD.id;
    RETURN OLD;
  END IF;
  UPDATE webhooks SET version = version + 1 WHERE team_secret_id = NEW.id;
  RETURN NEW;
END $$;
CREATE TRIGGER secret_of_webhooks_changed BEFORE DELETE OR UPDATE OF sealed_value ON stored_secrets
  FOR EACH ROW EXECUTE FUNCTION follow_secret_of_webhooks();
