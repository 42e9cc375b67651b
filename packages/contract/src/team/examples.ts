/** Examples of the operations on teams, agent identities and the audit log. */
import { type Example, exampleCreator, exampleIds, exampleTimes } from '../wire/example.ts';

const { created } = exampleTimes;
const deleted: Example = { answer: { success: true } };
const team = {
  uid: exampleIds.TEAM_UID,
  name: 'Payments',
  role: 'owner',
  is_current: true,
  created_at: created,
};
const person = { type: 'user', uid: exampleIds.USER_UID, display_name: 'Ada' };
const member = { user: person, role: 'admin', joined_at: created };
const invitation = {
  id: exampleIds.INVITATION_ID,
  role: 'member',
  note: 'Ada',
  invited_by: exampleCreator,
  created_at: created,
  expires_at: '2026-11-01T12:00:00.000Z',
};
const identity = {
  uid: exampleIds.IDENTITY_UID,
  name: 'Release agent',
  description: 'Builds and publishes releases',
  available: true,
  created_at: created,
  updated_at: created,
  base_model: 'runbook',
  skills: [],
  secrets: [],
  on_behalf_of_enabled: false,
  memory: { attached_stores: [], auto_memory: { enabled: false } },
  default_runner_uid: '',
};

const savedView = {
  id: exampleIds.VIEW_ID,
  name: 'Failed in billing',
  path: `/runs?state=FAILED&factory_uid=${exampleIds.FACTORY_UID}`,
  position: 0,
  created_at: created,
};

export const accessExamples = {
  search: {
    query: { q: 'hello', kind: ['run'] },
    answer: {
      results: [
        {
          kind: 'run',
          uid: exampleIds.RUN_ID,
          name: 'Hello',
          path: `/runs/${exampleIds.RUN_ID}`,
          is_id_match: false,
          changed_at: created,
          state: 'SUCCEEDED',
        },
      ],
    },
  },
  listSavedViews: { answer: { saved_views: [savedView] } },
  createSavedView: { body: { name: savedView.name, path: savedView.path }, answer: savedView },
  updateSavedView: { body: { position: 0 }, answer: savedView },
  deleteSavedView: deleted,
  listTeams: { answer: { teams: [team] } },
  createTeam: { body: { name: 'Payments' }, answer: team },
  updateTeam: { body: { name: 'Payments' }, answer: team },
  listTeamMembers: { answer: { members: [member], managed_by: 'hand' } },
  updateTeamMember: { body: { role: 'admin' }, answer: member },
  removeTeamMember: { answer: { success: true, agent_keys: [], worker_pools: ['build-1'] } },
  listTeamInvitations: { answer: { invitations: [invitation] } },
  createTeamInvitation: { body: { role: 'member', note: 'Ada' }, answer: { ...invitation, key: 'ryi_k3Fz…x8Qw' } },
  deleteTeamInvitation: deleted,
  readTeamInvitation: {
    body: { key: exampleIds.INVITATION_KEY },
    answer: { team_name: 'Platform', role: 'member', invited_by: 'Ada', expires_at: exampleTimes.ended },
  },
  acceptTeamInvitation: {
    body: { key: exampleIds.INVITATION_KEY, display_name: 'Ada' },
    answer: { team: { ...team, role: 'member' }, user: person, key: 'ryk_k3Fz…x8Qw' },
  },
  joinTeam: { body: { key: exampleIds.INVITATION_KEY }, answer: { ...team, role: 'member', is_current: false } },
  listAgentIdentities: { answer: { agents: [identity] } },
  createAgentIdentity: {
    body: { name: 'Release agent', description: 'Builds and publishes releases', base_model: 'runbook' },
    answer: identity,
  },
  getAgentIdentity: { answer: identity },
  updateAgentIdentity: { body: { description: 'Builds and publishes releases' }, answer: identity },
  deleteAgentIdentity: deleted,
  listAcceptances: {
    answer: {
      waiting: [
        {
          kind: 'environment',
          uid: exampleIds.ENVIRONMENT_UID,
          name: 'Web',
          revision: 4,
          author: person,
          authors: [person],
          written_at: created,
          accepted_revision: 3,
          difference: [{ path: 'setup_commands', before: ['npm ci'], after: ['npm ci', 'npm run build'] }],
        },
      ],
    },
  },
  previewAcceptances: {
    answer: {
      executors: [
        {
          executor: { type: 'user', uid: exampleIds.USER_UID, display_name: 'Ada' },
          waiting: [
            {
              kind: 'environment',
              uid: exampleIds.ENVIRONMENT_UID,
              name: 'Web',
              revision: 4,
              author: person,
              authors: [person],
              written_at: created,
              accepted_revision: 3,
            },
          ],
          starts: [],
        },
      ],
    },
  },
  countAcceptances: { answer: { waiting: 1 } },
  accept: {
    body: { kind: 'environment', uid: exampleIds.ENVIRONMENT_UID, revision: 1 },
    answer: { kind: 'environment', uid: exampleIds.ENVIRONMENT_UID, revision: 1, accepted_at: created },
  },
  listAuditEntries: {
    query: { subject_type: 'member', limit: 20 },
    answer: {
      entries: [
        {
          id: '019a1c55-31c0-7a4e-9d11-0c5b7e2f8a64',
          occurred_at: created,
          actor: exampleCreator,
          action: 'member.update',
          subject: { type: 'member', uid: exampleIds.USER_UID, name: 'Ada' },
          before: { role: 'member' },
          after: { role: 'admin' },
          origin: { address: '127.0.0.1', user_agent: 'curl/8.14', request_id: 'a3f1', key_uid: exampleIds.KEY_UID },
        },
      ],
      page_info: { has_next_page: false },
    },
  },
} as const satisfies Record<string, Example>;
