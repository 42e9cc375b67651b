import { z } from 'zod';
import { type RouteName, routes } from '../routes.ts';
import { sessionCookie } from '../team/browser-sessions.ts';
import { deliveredEvent } from '../team/event-subscription-examples.ts';
import { EventPayload } from '../team/event-subscriptions.ts';
import { type Allow, describeAllow } from '../wire/access.ts';
import { Problem } from '../wire/errors.ts';
import type { Example } from '../wire/example.ts';
import { IdempotencyKey } from '../wire/primitives.ts';
import { apiPrefix, checksNames, type Route, routeTags } from '../wire/route.ts';
import { curlCommand, examplePathValue } from './curl.ts';
import { examples } from './examples.ts';
import { problems } from './openapi-problems.ts';

type Json = Record<string, unknown>;

/** Named schemas by component name. They are collected while the paths of the document are written. */
type Components = Map<string, Json>;

const refPrefix = '#/components/schemas/';

/**
 * Converts a schema. The result never forbids unknown members, because requests may contain them and future answers may have more members.
 */
function toJsonSchema(schema: z.ZodType, io: 'input' | 'output', components: Components): Json {
  const {
    $schema: _dialect,
    $defs,
    ...root
  } = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      delete jsonSchema.id;
      // Omit the pattern that zod writes next to this format, because the pattern is very long and the format says enough.
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    },
  }) as Json & { $defs?: Record<string, Json> };
  for (const [name, definition] of Object.entries($defs ?? {})) addComponent(name, definition, components);
  const id = schema.meta()?.id;
  if (id === undefined) return withComponentRefs(root) as Json;
  if (!('$ref' in root)) addComponent(id, root, components);
  return { $ref: refPrefix + id };
}

function addComponent(name: string, definition: Json, components: Components): void {
  const { id: _id, $id: _uri, ...rest } = withComponentRefs(definition) as Json;
  const known = components.get(name);
  // zod writes a reference of a definition to itself as "#".
  const text = JSON.stringify(rest).replaceAll('"$ref":"#"', `"$ref":"${refPrefix}${name}"`);
  if (known && JSON.stringify(known) !== text) throw new Error(`schema ${name} differs between requests and answers`);
  components.set(name, JSON.parse(text));
}

function withComponentRefs(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll('"$ref":"#/$defs/', `"$ref":"${refPrefix}`));
}

/** Returns the content of a JSON body. If `example` is `undefined`, the document has no example. */
const jsonContent = (schema: Json, example: unknown) => ({ 'application/json': { schema, example } });

function parameters(route: Route, example: Example, components: Components): Json[] {
  const exampleOf = (name: string, where: 'path' | 'query'): unknown =>
    where === 'path' ? examplePathValue(route.path, name) : example.query?.[name];
  const of = (source: z.ZodObject | undefined, where: 'path' | 'query'): Json[] => {
    if (!source) return [];
    const schema = toJsonSchema(source, 'input', components) as {
      properties: Record<string, Json>;
      required?: string[];
    };
    return Object.entries(schema.properties).map(([name, { description, ...property }]) => ({
      name,
      in: where,
      required: where === 'path' || (schema.required ?? []).includes(name),
      ...(description === undefined ? {} : { description }),
      ...(property.type === 'object' ? { style: 'deepObject', explode: true } : {}),
      schema: property,
      example: exampleOf(name, where),
    }));
  };
  const header = (name: string, description: string, schema: z.ZodType = z.string()): Json => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: toJsonSchema(schema, 'input', components),
  });
  return [
    ...of(route.params, 'path'),
    ...of(route.query, 'query'),
    ...('user' in route.allow
      ? [header('X-Team-Uid', 'Team of the request; a caller in one team need not send it')]
      : []),
    ...(route.once
      ? [header('Idempotency-Key', 'The same key and body within 24 h: the first answer again', IdempotencyKey)]
      : []),
    ...(checksNames(route)
      ? [header('Prefer', '`handling=strict`: 400 for each member and parameter that is not known (RFC 7240)')]
      : []),
    ...(route.ranges
      ? [
          header('Range', 'One range of bytes, such as bytes=0-1023'),
          header('If-Range', 'ETag of the bytes that the client has. With another ETag, the answer has all bytes'),
        ]
      : []),
    ...(route.tagged ? [header('If-None-Match', 'ETag of the answer that the client has')] : []),
    ...Object.entries(route.headers ?? {}).map(([name, description]) => header(name, description)),
  ];
}

/** Returns the credentials that a route accepts, by the names of the document's security schemes. */
function security(allow: Allow): Json[] {
  if ('run' in allow) return [{ runToken: [] }];
  if ('anyone' in allow) return [];
  return [
    ...(allow.publicThings || allow.keylessBytes ? [{}] : []),
    { apiKey: [] },
    ...(allow.session === false || allow.operator ? [] : [{ browserSession: [] }]),
  ];
}

/** Response headers about unknown names of members and parameters. */
const headersOfNames = {
  'X-Ignored-Fields':
    'Paths of the members and parameters that are not known and were ignored, as a List of Strings (RFC 9651); `more` after 20. Absent: there are none',
  'Preference-Applied': '`handling=strict` where the request prefers it',
};

/** Response headers about rate limits, as in draft-ietf-httpapi-ratelimit-headers-10. Only requests with a key get them. */
const headersOfRates = {
  'RateLimit-Policy':
    'Limits of the key and of its team: `"key";q=300000;w=60` are 300,000 requests in 60 seconds. Absent: there are none',
  RateLimit: 'What is left of them: `"key";r=299999;t=1` are 299,999 requests, and all again in 1 second',
};

function operation(name: RouteName, components: Components, baseUrl: string): Json {
  const route: Route = routes[name];
  const example = examples[name];
  const { answer } = route;
  // OpenAPI 3.1 cannot describe the events of a stream. So the schema of the events is added as a component, and the description of the
  // answer names this component.
  if (answer.eventSchema) toJsonSchema(answer.eventSchema, 'output', components);
  const content = answer.schema
    ? jsonContent(toJsonSchema(answer.schema, 'output', components), example.answer)
    : answer.contentType && {
        [answer.contentType]: {
          ...(answer.eventSchema ? {} : { schema: { type: 'string' } }),
          example: example.answer,
        },
      };
  const headers = Object.entries({
    ...answer.headers,
    ...(checksNames(route) ? headersOfNames : {}),
    ...('user' in route.allow ? headersOfRates : {}),
  }).map(([header, description]) => [header, { description, schema: { type: 'string' } }]);
  const problem = toJsonSchema(Problem, 'output', components);
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    description: `${route.description ? `${route.description} ` : ''}Callers: ${describeAllow(route.allow)}.`,
    'x-allow': route.allow,
    'x-codeSamples': [{ lang: 'Shell', label: 'curl', source: curlCommand(route, example, baseUrl) }],
    ...(route.deprecated ? { deprecated: true } : {}),
    security: security(route.allow),
    parameters: parameters(route, example, components),
    ...(route.body
      ? {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: jsonContent(toJsonSchema(route.body, 'input', components), example.body),
          },
        }
      : route.bodyType
        ? // The body is not required, because a missing body has the same meaning as an empty body.
          {
            requestBody: {
              required: false,
              content: { [route.bodyType]: { schema: { type: 'string' }, example: example.bytes } },
            },
          }
        : {}),
    responses: {
      [answer.status]: {
        description: answer.description,
        ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
        ...(content ? { content } : {}),
      },
      ...(route.redirects
        ? {
            302: {
              description: 'Go to Location, where the bytes are',
              headers: { Location: { schema: { type: 'string' } } },
            },
          }
        : {}),
      ...(route.ranges
        ? { 206: { description: 'The bytes of the Range; Content-Range says which', ...(content ? { content } : {}) } }
        : {}),
      ...(route.tagged ? { 304: { description: 'The client has it already' } } : {}),
      ...Object.fromEntries(
        Object.entries(problems(route)).map(([status, description]) => [
          status,
          { description, content: { 'application/problem+json': { schema: problem } } },
        ]),
      ),
    },
  };
}

/** The requests that the service sends to the URL of an event subscription. */
function eventWebhook(components: Components): Json {
  const header = (name: string, description: string): Json => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  return {
    post: {
      operationId: 'deliverEvent',
      tags: ['event_subscriptions'],
      summary: 'An event of a run',
      description:
        'Sent at least once, by Standard Webhooks (standardwebhooks.com): check the signature with one of its libraries and the secret of the subscription, and keep the ids of what was handled. Any failure is tried again for 24 h. Redirects are not followed.',
      security: [],
      parameters: [
        header('webhook-id', 'Id of the delivery, the same in every attempt'),
        header('webhook-timestamp', 'Seconds since 1970 of this attempt'),
        header('webhook-signature', 'v1,{base64}; two of them, with a space between, for 24 h after a rotation'),
      ],
      requestBody: {
        required: true,
        content: jsonContent(toJsonSchema(EventPayload, 'output', components), deliveredEvent),
      },
      responses: {
        '2XX': { description: 'Taken; answer within 10 s' },
        410: { description: 'Gone: the subscription is disabled' },
        429: { description: 'Too many; Retry-After is respected, with 503 too' },
      },
    },
  };
}

/** Returns the OpenAPI 3.1 document for the table of routes. `baseUrl` is the origin, without `/api/v1`. */
export function openApiDocument(baseUrl: string): Json {
  const components: Components = new Map();
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(name, components, baseUrl) };
  }
  const webhooks = { runEvent: eventWebhook(components) };
  const bearer = (description: string) => ({ type: 'http', scheme: 'bearer', description });
  // Convert the document to JSON and back, because this removes members without a value.
  return JSON.parse(
    JSON.stringify({
      openapi: '3.1.0',
      info: {
        title: 'Runyard',
        version: '1.0.0',
        description:
          'Cloud agent runs on your own machines. No string in a request may hold U+0000 or half a surrogate pair, and no object a member named `__proto__`: 400. Members and query parameters that are not known are ignored and named in the header `X-Ignored-Fields` of the answer; another spelling of a known one is 400 with a suggestion, and with the header `Prefer: handling=strict` each unknown one is 400. The names in maps such as metadata are free.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: baseUrl + apiPrefix }],
      tags: Object.entries(routeTags).map(([name, description]) => ({ name, description })),
      paths,
      webhooks,
      components: {
        schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
        securitySchemes: {
          apiKey: bearer('An API key: `Authorization: Bearer <key>`'),
          browserSession: {
            type: 'apiKey',
            in: 'cookie',
            name: sessionCookie,
            description:
              'The session of a browser, from POST /browser-sessions; without TLS, on a loopback address, the cookie is `runyard-PORT`. A request other than GET also needs the Origin of the service, and the header X-CSRF-Token with the csrf_token of GET /session. A request with Authorization ignores the cookie',
          },
          runToken: bearer('The token of one assignment of one run; the agent gets it with its task'),
        },
      },
    }),
  );
}
