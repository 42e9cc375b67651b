import type { Client } from '@runyard/client';
import type { Factory } from '@runyard/contract/factories/factories';

/** Returns all factories of the team, by name. */
export async function allFactories(client: Client, search?: string): Promise<Factory[]> {
  const found: Factory[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listFactories({
      query: { limit: 100, ...(search === undefined ? {} : { search }), ...(cursor === undefined ? {} : { cursor }) },
    });
    found.push(...page.factories);
    cursor = page.page_info.next_cursor;
  } while (cursor !== undefined);
  return found;
}
