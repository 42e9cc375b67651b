-- Environments: named settings (repositories, image, setup commands) that runs start in.

CREATE TABLE environments (
  -- Id in the API.
  uid text PRIMARY KEY CHECK (uid ~ '^[A-Za-z0-9]{22}$'),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  config jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  creator_kind text CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text,
  last_editor_kind text CHECK (last_editor_kind IN ('user', 'service_account')),
  last_editor_uid text,
  -- In content_revisions. A trigger sets it.
  revision integer NOT NULL DEFAULT 0,
  -- Since when a person who has the uid may use the environment; NULL: it is not shared by its link.
  link_shared_at timestamptz
);
CREATE INDEX environments_team ON environments (team_id, updated_at DESC, uid);

CREATE FUNCTION revise_environment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('environment', NEW.uid, NEW.team_id, NEW.last_editor_kind, NEW.last_editor_uid, NEW.config);
  RETURN NEW;
END $$;
CREATE TRIGGER revise_environment BEFORE INSERT OR UPDATE OF config ON environments FOR EACH ROW EXECUTE FUNCTION revise_environment();
CREATE TRIGGER end_environment_revisions AFTER DELETE ON environments REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('environment');

-- People of other teams who may see an environment and start runs of their own team in it.
CREATE TABLE environment_guests (
  environment_uid text NOT NULL REFERENCES environments ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  granted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (environment_uid, user_id)
);
CREATE INDEX environment_guests_user ON environment_guests (user_id);

-- Invitations to use an environment of another team. The invited person sees the environment after accepting.
CREATE TABLE environment_invitations (
  id uuid PRIMARY KEY,
  environment_uid text NOT NULL REFERENCES environments ON DELETE CASCADE,
  -- 'user': invitee is the UID of a person; 'email': an address in lower case.
  kind text NOT NULL CHECK (kind IN ('user', 'email')),
  invitee text NOT NULL,
  invited_by_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL DEFAULT now() + interval '30 days',
  UNIQUE (environment_uid, kind, invitee)
);
CREATE INDEX environment_invitations_invitee ON environment_invitations (kind, invitee);

-- People of other teams who opened an environment while it was shared. They are deleted when the sharing ends.
CREATE TABLE environment_visitors (
  environment_uid text NOT NULL REFERENCES environments ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  opened_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (environment_uid, user_id)
);
CREATE INDEX environment_visitors_user ON environment_visitors (user_id);
