/** Documents that are the same for everyone: the OpenAPI document and the JSON Schemas of definition files. */
import { factoryFileSchemas, schemaVersion } from '@runyard/contract/factories/files/json-schemas';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { routes } from '@runyard/contract/routes';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { notFound } from '../../../platform/serving/refusal.ts';
import { addRoute } from '../server/add-route.ts';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { Addresses } from '../server/deps.ts';

/** Registers the OpenAPI document. */
export function registerOpenApiDocument(app: FastifyInstance, deps: Addresses): void {
  const sendDocument = cachedAnswer(deps.baseUrl, (baseUrl) => JSON.stringify(openApiDocument(baseUrl)));
  addRoute(app, routes.getOpenApi, async ({ reply }) => {
    reply.type('application/json; charset=utf-8').header('access-control-allow-origin', '*');
    reply.header('access-control-expose-headers', 'X-Ignored-Fields, Preference-Applied');
    return await sendDocument(reply);
  });
}

/** Returns the schemas by the names of their documents. This takes 50 ms, so the service does it at the first request and not when it
 * starts. */
const makeDocuments = (): Record<string, unknown> =>
  Object.fromEntries(Object.values(factoryFileSchemas()).map((document) => [String(document.$id), document]));

const always = (make: () => unknown) =>
  cachedAnswer(
    () => '',
    () => JSON.stringify(make()),
  );

/** Registers the JSON Schemas of definition files. */
export function registerFactoryFileSchemas(app: FastifyInstance): void {
  let made: Record<string, unknown> | undefined;
  const documents = () => {
    made ??= makeDocuments();
    return made;
  };
  const sendVersions = always(() => ({
    current_version: schemaVersion,
    versions: [{ schema_version: schemaVersion, schema_url: `${apiPrefix}/factory-files/schemas/${schemaVersion}` }],
  }));
  const sendAll = always(() => ({ schema_version: schemaVersion, documents: documents() }));
  const sendOne = new Map<string, ReturnType<typeof cachedAnswer>>();
  const forEveryone = (reply: FastifyReply) =>
    reply.type('application/json; charset=utf-8').header('access-control-allow-origin', '*');

  addRoute(app, routes.listFactoryFileSchemas, async ({ reply }) => await sendVersions(forEveryone(reply)));

  addRoute(app, routes.getFactoryFileSchemas, async ({ params, reply }) =>
    params.schemaVersion === schemaVersion ? await sendAll(forEveryone(reply)) : notFound('version'),
  );

  addRoute(app, routes.getFactoryFileSchema, async ({ params, reply }) => {
    const { document } = params;
    if (params.schemaVersion !== schemaVersion) return notFound('version');
    if (!Object.hasOwn(documents(), document)) return notFound('schema');
    const send = sendOne.get(document) ?? always(() => documents()[document]);
    sendOne.set(document, send);
    return await send(forEveryone(reply));
  });
}
