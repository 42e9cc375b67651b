// Written by bin/generate from the schemas of the contract.
import type { MemberFacts } from './row.ts';

// biome-ignore format: one line a route
export const members: Readonly<Record<string, Readonly<Record<string, MemberFacts>>>> = {
  acceptTeamInvitation: {"email":{}},
  compareDefinitionVersions: {"from":{"help":"version to compare with, 0 for none; default: the version before","least":0}},
  createCodeHostCredential: {"scope":{"choices":["personal","team"]},"owner":{"help":"only for repositories of this owner (default: for every owner)"},"host":{},"username":{},"app_id":{},"installation_id":{},"token":{}},
  createFactory: {"alias":{"help":"short name, unique in the team"},"description":{"help":"purpose of the factory"}},
  createKey: {"kind":{"help":"personal: acts as its user. agent: acts as a service account of the team. worker: connects workers of the hosted pool, which serve all teams, and gives no other access","choices":["personal","agent","worker"]},"agent_uid":{"help":"UID of the agent identity as which an agent key acts (default: the key itself is a service account)"},"limited_to":{"help":"definition_plans: the key only checks and plans definitions of factories (POST /factory/{factoryUid}/definition/plan, POST /factory-files/validate), for programs that check a change before it is merged","choices":["definition_plans"]},"expires_in":{"help":"how long a key works; d: days","choices":["1d","30d","90d","never"]}},
  createMcpServer: {"url":{},"command":{},"args":{"isList":true},"env":{}},
  createSchedule: {"name":{},"cron_schedule":{},"timezone":{},"overlap":{"choices":["allow","skip","queue","cancel_previous"]},"max_live_runs":{"least":1},"notify":{"isList":true},"executor_uid":{},"enabled":{}},
  createTeamInvitation: {"role":{"help":"role that the invited person gets; not above the role of the caller","choices":["owner","admin","member","viewer"]},"note":{"help":"note about the invited person, at most 200 characters"},"expires_in_hours":{"help":"hours until the invitation ends, at most 720 (default: 168)","least":1}},
  createWebhook: {"auth_mode":{"choices":["token","url_token","signature"]},"signature_scheme":{"choices":["standard_webhooks","stripe","github","sentry","pagerduty","vercel","slack","gitlab","bitbucket","jira","linear","shopify","intercom","zendesk","grafana","zoom","hmac","event_grid","microsoft_graph","sns"]},"secret":{},"secret_name":{},"delivery_id_header":{},"delivery_id_path":{},"event_header":{},"duplicate_window_seconds":{"least":0},"signature":{},"enabled":{}},
  deleteSecret: {"scope":{"choices":["personal","team"]}},
  dispatchFactory: {"title":{"help":"title of the run and its task (default: first line of the prompt, cut at 80 characters)"},"ticket_ref":{"help":"the ticket as SOURCE:ID, such as linear:BILL-12, or only its id, at most 256 bytes. Absent: a new one of the source adhoc. The metadata of the run has ticket_source and ticket_id"},"ticket_url":{"help":"address of the ticket, at most 256 bytes; metadata of the run"}},
  dryRunAutomation: {"payload":{},"delivery_id":{},"event":{},"webhook_uid":{},"schedule_name":{}},
  listAuditEntries: {"limit":{"help":"at most this many entries, 1 to 500 (default: 50)","least":1},"actor":{"help":"only changes of the person or agent with this UID"},"action":{"help":"only changes of this kind, such as key.create"},"subject_uid":{"help":"only changes of the thing with this id"},"since":{"help":"only changes at this time or later, RFC 3339"},"until":{"help":"only changes before this time, RFC 3339"}},
  listAutomationFires: {"limit":{"help":"at most this many fires, 1 to 100 (default: 20)","least":1}},
  listFactories: {"search":{}},
  listNotifications: {"scope":{"help":"mine: notifications of the caller, who must be a person. team: of any member of the team","choices":["mine","team"]},"kind":{"help":"only these kinds. Repeat the parameter for several","choices":["question","answer_question","spec_review","pr_review","blocked","failed","acceptance","failed_times","missed","budget"],"isList":true},"factory_uid":{"help":"only work of this factory"},"is_read":{},"limit":{"help":"at most this many notifications, 1 to 100 (default: 50)","least":1}},
  listScheduleFires: {"limit":{"help":"at most this many fires, 1 to 100 (default: 20)","least":1}},
  listWebhookDeliveries: {"limit":{"help":"at most this many deliveries, 1 to 100 (default: 20)","least":1},"label":{"choices":["ACCEPTED","DUPLICATE","REJECTED_AUTH","REJECTED_INVALID_JSON","REJECTED_TOO_LARGE"]}},
  putModelProvider: {"key":{},"base_url":{"help":"base URL of the provider. local needs one, with its /v1. Absent: that of the settings. Its address must be public, or in RUNYARD_ALLOW_PRIVATE_NETWORKS"}},
  putSecret: {"scope":{"choices":["personal","team"]},"value":{},"agents":{"isList":true}},
  rotateWebhookSecret: {"secret":{},"grace_seconds":{"help":"how long the old secret is also accepted, at most a day; 0: it stops working at once (default: 0)","least":0}},
  simulateDelivery: {"payload":{},"delivery_id":{},"event":{}},
  testFilter: {"payload":{},"delivery_id":{}},
  updateMcpServer: {"url":{},"command":{},"args":{"isList":true},"env":{},"name":{}},
  updateSchedule: {"name":{},"cron_schedule":{},"prompt":{},"timezone":{},"overlap":{"choices":["allow","skip","queue","cancel_previous"]},"max_live_runs":{"least":1},"notify":{"isList":true},"executor_uid":{}},
  updateTeamBudget: {"monthly_limit_usd":{},"credits":{},"notify":{"isList":true}},
  updateWebhook: {"name":{},"secret_name":{},"delivery_id_header":{},"delivery_id_path":{},"event_header":{},"duplicate_window_seconds":{"least":0},"signature":{}},
};
