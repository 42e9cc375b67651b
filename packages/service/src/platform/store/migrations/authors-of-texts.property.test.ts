/**
 * Random people edit random members of a configuration and accept random revisions. The test compares the stored authors of each text with
 * the authors that a separate model computes.
 */
import { randomUUIDv7 } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';

const team = randomUUIDv7();
const people = ['ada', 'bob', 'cy'];
const database = closeAtEnd(await createTestDatabase());
const { db } = database;
await db.query('INSERT INTO teams (id, uid, name) VALUES ($1, $2, $2)', [team, 'T'.repeat(22)]);
for (const person of people)
  await db.query('INSERT INTO users (id, uid, display_name) VALUES ($1, $2, $2)', [randomUUIDv7(), person]);

/** A configuration with a member, an entry of a map, named entries of a list, and entries that are their own names. */
interface Config {
  readonly name: string;
  readonly description?: string | undefined;
  readonly docker_image?: string | undefined;
  readonly limits?: Readonly<Record<string, number>>;
  readonly secrets?: readonly { readonly name: string; readonly variable?: string }[];
  readonly setup_commands: readonly string[];
}

const value = fc.constantFrom('a', 'b', 'c');
const config: fc.Arbitrary<Config> = fc.record(
  {
    name: value,
    description: value,
    docker_image: value,
    limits: fc.dictionary(fc.constantFrom('memory_mb', 'processes'), fc.integer({ min: 1, max: 2 }), { minKeys: 1 }),
    secrets: fc.uniqueArray(
      fc.record({ name: fc.constantFrom('ONE', 'TWO'), variable: value }, { requiredKeys: ['name'] }),
      { selector: ({ name }) => name, minLength: 1 },
    ),
    setup_commands: fc.uniqueArray(value, { minLength: 1 }),
  },
  { requiredKeys: ['name', 'setup_commands'] },
);
const step = fc.record({
  person: fc.constantFrom(...people),
  config,
  /** Members of the present configuration that the edit leaves as they are. */
  kept: fc.subarray(['description', 'docker_image', 'limits', 'secrets', 'setup_commands'] as const),
  /** People who accept the revision after the edit. */
  accepts: fc.subarray(people),
});

/** Returns the texts of a configuration by their paths. Name and description do not count as texts. */
function wordsOf({ docker_image, limits = {}, secrets = [], setup_commands }: Config): Map<string, unknown> {
  return new Map<string, unknown>([
    ...(docker_image === undefined ? [] : [['docker_image', docker_image] as const]),
    ...Object.entries(limits).map(([name, limit]) => [`limits/${name}`, limit] as const),
    ...secrets.flatMap(({ name, variable }) => [
      [`secrets/${name}/name`, name] as const,
      ...(variable === undefined ? [] : [[`secrets/${name}/variable`, variable] as const]),
    ]),
    ...setup_commands.map((command) => [`setup_commands/${command}`, command] as const),
  ]);
}

/** Returns the texts of a configuration as JSON. Two configurations with another order of entries differ. */
const textsOnly = ({ name: _, description: __, ...texts }: Config = { name: '', setup_commands: [] }): string =>
  JSON.stringify(
    Object.entries(texts)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

interface Written {
  readonly value: unknown;
  readonly authors: ReadonlySet<string>;
  /** People who have accepted this value, and no later value since. */
  readonly acceptedBy: Set<string>;
}

/** Returns the earlier authors whom the sender has not accepted. */
const unaccepted = (sender: string, texts: readonly (Written | undefined)[]): string[] =>
  texts.flatMap((text) => (text === undefined || text.acceptedBy.has(sender) ? [] : [...text.authors]));

/** Returns the path of the list or map that contains an entry; undefined for a member of the configuration itself. */
const holderOf = (at: string): string | undefined => (at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : undefined);

function modelAfter(before: ReadonlyMap<string, Written>, sender: string, after: Config): Map<string, Written> {
  const words = wordsOf(after);
  const isAll = (holder: string, map: ReadonlyMap<string, unknown>) =>
    [...map.keys()].some((at) => at.startsWith(`${holder}/`));
  const gone = [...before].filter(([at]) => !words.has(at));
  return new Map(
    [...words].map(([at, text]): [string, Written] => {
      const earlier = before.get(at);
      if (earlier && earlier.value === text) return [at, earlier];
      // A new entry may be the changed form of a removed entry of the same list.
      let holder = holderOf(at);
      while (holder !== undefined && !isAll(holder, before)) holder = holderOf(holder);
      const replaced = earlier
        ? [earlier]
        : gone
            .filter(([other]) => {
              let of = holderOf(other);
              while (of !== undefined && !isAll(of, words)) of = holderOf(of);
              return holder !== undefined && of === holder;
            })
            .map(([, written]) => written);
      return [at, { value: text, authors: new Set([sender, ...unaccepted(sender, replaced)]), acceptedBy: new Set() }];
    }),
  );
}

/** Converts a key of `content_revisions.texts` to the form of the model. A key may contain the hash of an entry instead of the entry. */
function placeOf(key: string, { setup_commands }: Config, hashes: ReadonlyMap<string, string>): string {
  const path = JSON.parse(key) as string[];
  const [first, last] = [path[0], path.at(-1) ?? ''];
  return first === 'setup_commands' && setup_commands.length > 0
    ? `${first}/${hashes.get(last) ?? last}`
    : path.join('/');
}

test('each text has exactly the authors that the rules give it, and each change has its sender as author', async () => {
  const { db } = database;
  const hashes = new Map<string, string>();
  for (const text of ['a', 'b', 'c']) {
    const [row] = await db.query<{ hash: string }>(
      `SELECT '=' || left(encode(sha256(convert_to(to_jsonb($1::text)::text, 'UTF8')), 'hex'), 32) AS hash`,
      [text],
    );
    hashes.set(row?.hash ?? '', text);
  }
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      number += 1;
      const uid = String(number).padStart(22, '0');
      let present: Config | undefined;
      let model = new Map<string, Written>();
      let revision: number | undefined;
      for (const { person, config: wanted, kept, accepts } of steps) {
        const members = kept
          .map((name) => [name, present?.[name]] as const)
          .filter(([, member]) => member !== undefined);
        const next: Config = { ...wanted, ...Object.fromEntries(present ? members : []) };
        await db.query(
          `INSERT INTO environments (uid, team_id, config, last_editor_kind, last_editor_uid) VALUES ($1, $2, $3, 'user', $4)
           ON CONFLICT (uid) DO UPDATE SET config = $3, last_editor_uid = $4`,
          [uid, team, JSON.stringify(next), person],
        );
        const [earlier, before] = [model, present];
        model = modelAfter(model, person, next);
        present = next;
        const [row] = await db.query<{
          revision: number;
          texts: Record<string, { since: number; authors: { uid: string }[] }>;
        }>('SELECT revision, texts FROM content_revisions WHERE uid = $1 AND superseded_at IS NULL', [uid]);
        const found = Object.entries(row?.texts ?? {}).filter(([key]) => !key.startsWith('-'));
        expect(
          Object.fromEntries(
            found.map(([key, { authors }]) => [placeOf(key, next, hashes), authors.map((each) => each.uid).sort()]),
          ),
        ).toEqual(Object.fromEntries([...model].map(([at, { authors }]) => [at, [...authors].sort()])));
        const changes = Object.values(row?.texts ?? {}).filter(({ since }) => since === row?.revision);
        const wordsIn = (written: ReadonlyMap<string, Written>) =>
          [...written].map(([at, { value: text }]) => `${at} ${text}`).sort();
        const isOf = ({ authors }: { readonly authors: readonly { readonly uid: string }[] }) =>
          authors[0]?.uid === person;
        if (row?.revision !== revision) {
          const isSame = textsOnly(next) === textsOnly(before);
          if (isSame) expect(changes).toEqual([]);
          else if (String(wordsIn(model)) !== String(wordsIn(earlier))) expect(changes.some(isOf)).toBe(true);
          expect(changes.every(isOf)).toBe(true);
        }
        revision = row?.revision;
        for (const acceptor of accepts) {
          await db.query(
            `INSERT INTO acceptances (user_uid, kind, uid, revision) VALUES ($1, 'environment', $2, $3)
             ON CONFLICT (user_uid, kind, uid) DO UPDATE SET revision = $3`,
            [acceptor, uid, row?.revision],
          );
          for (const text of model.values()) text.acceptedBy.add(acceptor);
        }
        for (const person of people) {
          const open = await db.query<{ author: { uid: string } }>(
            `SELECT o.author FROM content_revisions c CROSS JOIN LATERAL open_authors(c.kind, c.uid, c.texts, 'user', $1) o
             WHERE c.uid = $2 AND c.superseded_at IS NULL AND EXISTS (SELECT FROM unnest(o.texts) t WHERE t NOT LIKE '-%')`,
            [person, uid],
          );
          const expected = [...model.values()]
            .filter(({ acceptedBy }) => !acceptedBy.has(person))
            .flatMap(({ authors }) => [...authors]);
          expect([...new Set(open.map(({ author }) => author.uid))].sort()).toEqual(
            [...new Set(expected)].filter((author) => author !== person).sort(),
          );
        }
      }
    }),
    { numRuns: 60 },
  );
});
