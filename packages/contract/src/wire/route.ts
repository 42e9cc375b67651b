import type { z } from 'zod';
import type { Allow } from './access.ts';

/** Sections of the reference. */
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
  /** Schema of a JSON body; absent: no body, or one of `contentType`. */
  readonly schema?: z.ZodType;
  /** Content type of a body that is not JSON. */
  readonly contentType?: string;
  /** One event of an answer of `text/event-stream`, as the JSON in its `data`. */
  readonly eventSchema?: z.ZodType;
  /** Names and meanings of headers that belong to the answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One endpoint. The path and the schemas use the names of the API. Names in `{}` are the names of `params`. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`. */
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
  /** Content type of a body that is not JSON; it is streamed to the handler. */
  readonly bodyType?: string;
  /** Default: 1 MB. */
  readonly bodyLimitBytes?: number;
  readonly answer: RouteAnswer;
  /** True: a header `Range` requests a part of the bytes (RFC 9110, 14), which is sent with 206; 416 if there is no such part. */
  readonly ranges?: true;
  /** True: the bytes may be at another address; the answer is then 302 with that address in Location. */
  readonly redirects?: true;
  /**
   * True: the answer has an `ETag`, and is 304 without a body for a client that has it already (RFC 9110, 13.1.2). The handler sends
   * it.
   */
  readonly tagged?: true;
  /** Statuses of problems, each with its reason, in addition to those that every route with its `allow` may return. */
  readonly errors?: Readonly<Record<number, string>>;
  readonly deprecated?: true;
  /** Name of an operation that is done once for each `Idempotency-Key`. Routes with the same name count as one operation. */
  readonly once?: string;
  /** True: the names of members are checked even if the caller is an agent, because the agent's model writes the names. */
  readonly namesChecked?: true;
  /**
   * True: the route ends something. Such a route works even while the disk is full and requests that store data are refused. Every DELETE
   * works then too.
   */
  readonly endsSomething?: true;
}

/**
 * Returns true if the names in the query and the body are checked. The service then refuses a misspelt name, and lists every other unknown name
 * in the answer. Names
 * in reports of agents and in requests to signed URLs are not checked, because agents may be newer than the service.
 */
export const checksNames = ({ allow, namesChecked }: Pick<Route, 'allow' | 'namesChecked'>): boolean =>
  namesChecked === true || 'user' in allow || ('anyone' in allow && allow.anyone === 'always');

/** Prefix of all paths. */
export const apiPrefix = '/api/v1';
