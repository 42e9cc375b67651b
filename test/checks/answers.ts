/** Compares the statuses that the OpenAPI document declares with those that the tests have received. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { apiPrefix } from '@runyard/contract/wire/route';

/** The server sends this status before it knows the operation. `packages/service/src/edges/http/app.test.ts` tests it. */
const beforeRouting = '431';

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, unknown>>;
}

/** Returns a sentence for each declared status that no test has received, and for each received status that is not declared. */
export function compareAnswers(folder: string): string[] {
  const seen = new Set(
    globSync('*.txt', { cwd: folder }).flatMap((file) => readFileSync(path.join(folder, file), 'utf8').split('\n')),
  );
  const { paths } = openApiDocument('') as { paths: Record<string, Record<string, Operation>> };
  const faults: string[] = [];
  for (const [route, operations] of Object.entries(paths)) {
    for (const [method, { operationId, responses }] of Object.entries(operations)) {
      const asked = `${method.toUpperCase()} ${apiPrefix}${route.replaceAll(/\{(\w+)\}/g, ':$1')} `;
      const statuses = [...seen].filter((line) => line.startsWith(asked)).map((line) => line.slice(asked.length));
      for (const status of Object.keys(responses))
        if (status !== beforeRouting && !statuses.includes(status))
          faults.push(`${operationId} declares ${status}, and no test has seen it`);
      for (const status of statuses)
        if (!(status in responses)) faults.push(`${operationId} answered ${status}, which it does not declare`);
    }
  }
  return faults;
}
