import type { z } from 'zod';
import type { Allow } from './access.ts';

/** Sections of the API reference. */
export const routeTags = {
  runs: 'Create, read, list and cancel runs',
  conversations: 'The messages and actions of a run',
  artifacts: 'What runs produced',
  agents: 'Skills of repositories that runs can follow',
  environments: 'The content of a sandbox before the agent begins',
  schedules: 'Prompts that become runs at fixed times',
  code_hosts: 'Credentials for cloning private repositories and for pushing',
  models: 'Language models that runs can name',
  workers: 'Self-hosted workers',
  keys: 'API keys',
  teams: 'Teams, the people in them, and invitations',
  saved_views: 'Views of the dashboard that a person has saved under names',
  agent_identities: 'Agents of a team that runs and agent keys act as',
  audit_log: 'Who changed what',
  acceptances:
    'Revisions of environments and other contents that people accept before their runs execute them with all rights',
  inbox: 'Notifications that need a person: questions, reviews, failed runs and acceptances',
  secrets: 'Values that runs use and nobody reads back',
  event_subscriptions: 'Webhooks that the service sends when something happens to a run',
  mcp_servers: 'MCP servers that the team has stored for its runs',
  usage: 'The limits of a team for models, and its usage',
  factories: 'Groups of webhooks and of the automations that they start',
  webhooks: 'URLs to which other systems send events that start runs',
  automations: 'Prompts that become runs when a webhook receives something',
  harness: 'The routes for the agent inside a sandbox, with the token of its run',
  service: 'The service itself',
} as const;
export type RouteTag = keyof typeof routeTags;

/** The answer of a successful request. */
export interface RouteAnswer {
  readonly status: number;
  readonly description: string;
  /** Schema of a JSON body. Absent: the answer has no body, or a body of the type `contentType`. */
  readonly schema?: z.ZodType;
  /** Content type of a body that is not JSON. */
  readonly contentType?: string;
  /** Schema of the JSON in the `data` of one event. Present if the answer is a stream of events (`text/event-stream`). */
  readonly eventSchema?: z.ZodType;
  /** Names and meanings of headers that this answer has. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One endpoint. The path and the schemas use the names of the API. Each name in braces in the path is a member of `params`. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below `/api/v1`. */
  readonly path: string;
  readonly tag: RouteTag;
  readonly summary: string;
  readonly description?: string;
  /** The accepted callers. The service checks them before it reads the body. */
  readonly allow: Allow;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Names and meanings of headers that only this request may have. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: z.ZodType;
  /** Content type of a body that is not JSON. The handler gets such a body as a stream. */
  readonly bodyType?: string;
  /** Maximum size of the body. Default: 1 MB. */
  readonly bodyLimitBytes?: number;
  readonly answer: RouteAnswer;
  /**
   * True: a request may ask for a part of the bytes with the header `Range` (RFC 9110, 14). The service answers 206 with this part, or 416
   * if there is no such part.
   */
  readonly ranges?: true;
  /** True: if the bytes are at another address, the service answers 302 with that address in the header Location. */
  readonly redirects?: true;
  /**
   * True: the handler sends an `ETag`. If the client already has the answer with this tag, the service answers 304 without a body (RFC
   * 9110, 13.1.2).
   */
  readonly tagged?: true;
  /** Further statuses of problems that this route returns, each with its reason. Statuses that follow from `allow` are not in this list. */
  readonly errors?: Readonly<Record<number, string>>;
  readonly deprecated?: true;
  /**
   * Present: the service does requests with the same `Idempotency-Key` only once. Routes with the same value of `once` share these keys.
   */
  readonly once?: string;
  /** True: the service checks the names of members even if the caller is an agent, because a model writes these requests. */
  readonly namesChecked?: true;
  /**
   * True: the route ends or cancels something. It works even while the disk is full, when the service refuses requests that store
   * data. Every DELETE also works then.
   */
  readonly endsSomething?: true;
}

/**
 * Returns true if the service checks the names in the query and the body of a request. It then refuses a misspelt name, and lists
 * every other unknown name in the answer. It does not check reports of agents and requests to signed URLs, because an agent may be
 * newer than the service.
 */
export const checksNames = ({ allow, namesChecked }: Pick<Route, 'allow' | 'namesChecked'>): boolean =>
  namesChecked === true || 'user' in allow || ('anyone' in allow && allow.anyone === 'always');

/** Prefix of all paths. */
export const apiPrefix = '/api/v1';
