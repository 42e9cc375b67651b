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
