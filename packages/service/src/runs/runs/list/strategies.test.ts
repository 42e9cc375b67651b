import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { expect, test } from 'vitest';
import { type Strategy, strategiesFor } from './strategies.ts';

/** Describes a strategy in one word, and a probe with its list and length. */
function nameOf(strategy: Strategy): string {
  if (!('length' in strategy)) return strategy.kind;
  if (!('list' in strategy)) return `${strategy.kind} ${strategy.length}`;
  const list = 'facet' in strategy.list ? strategy.list.facet : (strategy.list.filter ?? 'all');
  return `${strategy.kind === 'probe_list' ? 'probe' : 'created'} ${list} ${strategy.length}`;
}

const ofLists = ['walk_list 2000', 'walk_matches', 'walk_sort 20000', 'walk_list 2000'];

/** These rows are the table of docs/decisions/run-list.md. */
const table: [string, Record<string, unknown>, string[]][] = [
  ['no filter', {}, ['read_in_order']],
  ['no filter, another sort', { sort_by: 'title' }, ['read_in_order']],
  ['one filter on a column', { state: ['FAILED'] }, ['read_in_order']],
  ['one filter, by several states', { state: ['FAILED', 'ERROR'] }, ['read_in_order']],
  ['one filter, by several sources', { source: ['API', 'CLI'] }, ['read_in_order']],
  ['one filter, by several statuses', { task_status: ['running', 'failed'] }, ['read_in_order']],
  ['one facet', { metadata: { a: 'b' } }, ['read_in_order']],
  ['one filter, by several factories', { factory_uid: ['a', 'b'] }, ['read_in_order']],
  ['bounds on times only', { updated_after: '2026-03-01T00:00:00Z' }, ['read_in_order']],
  [
    'one filter, by creation',
    { name: 'n', sort_by: 'created_at' },
    ['short_list 1000', 'walk_sort 1000', 'created name 300', 'created name 2000', ...ofLists, 'read_in_order'],
  ],
  [
    'one filter, by title or skill',
    { name: 'n', sort_by: 'title' },
    ['short_list 1000', 'walk_sort 1000', ...ofLists, 'read_in_order'],
  ],
  [
    'two filters, by title or skill',
    { name: 'n', creator: ['u'], sort_by: 'title' },
    ['short_list 1000', 'walk_sort 1000', 'walk_matches', ...ofLists, 'read_in_order'],
  ],
  [
    'bounds on times, by skill',
    { created_after: '2026-03-01T00:00:00Z', sort_by: 'agent' },
    ['short_list 1000', 'walk_sort 1000', 'walk_skills 2000', ...ofLists, 'read_in_order'],
  ],
  ['a state and a source', { state: ['FAILED'], source: ['API'] }, ['read_in_order']],
  ['several states and sources', { task_status: ['failed'], source: ['API', 'CLI'] }, ['read_in_order']],
  [
    'a state, a source and another filter on a column',
    { state: ['FAILED'], source: ['API'], name: 'n' },
    ['probe name 300', 'probe source 300', 'intersect_lists'],
  ],
  [
    'so many states and sources that they are two filters',
    { task_status: ['running', 'failed'], source: ['API', 'CLI'] },
    ['probe source 300', 'probe task_status 300', 'probe source 2000', 'probe task_status 2000', 'sort_matches'],
  ],
  ['no environment, by skill', { environment_id: 'empty-environment', sort_by: 'agent' }, ['read_in_order']],
  ['one skill, by skill', { skill: 'owner/repo:a/SKILL.md', sort_by: 'agent' }, ['read_in_order']],
  [
    'no environment and a bound on times, by skill',
    { environment_id: 'empty-environment', updated_after: '2026-03-01T00:00:00Z', sort_by: 'agent' },
    ['short_list 1000', 'walk_sort 1000', 'walk_skills 2000', ...ofLists, 'read_in_order'],
  ],
  ['two filters on columns', { name: 'n', source: ['API'] }, ['probe name 300', 'probe source 300', 'intersect_lists']],
  [
    'two facets',
    { metadata: { a: 'b', c: 'd' } },
    ['probe metadata:a=b 300', 'probe metadata:c=d 300', 'intersect_lists'],
  ],
  [
    'a facet and a filter on a column',
    { metadata: { a: 'b' }, name: 'n' },
    ['probe metadata:a=b 300', 'probe name 300', 'probe metadata:a=b 2000', 'probe name 2000', 'sort_matches'],
  ],
  [
    'several states and another filter on a column',
    { state: ['FAILED', 'ERROR'], name: 'n' },
    ['probe state 300', 'probe name 300', 'probe state 2000', 'probe name 2000', 'sort_matches'],
  ],
  [
    'several sources and another filter on a column',
    { source: ['API', 'CLI'], name: 'n' },
    ['probe name 300', 'probe source 300', 'probe name 2000', 'probe source 2000', 'sort_matches'],
  ],
  ['ids of runs, with any filter and sort', { run_id: ['x'], name: 'n', sort_by: 'title' }, ['sort_matches']],
  ['words', { q: 'flaky' }, ['search_by_week']],
  ['words and a filter', { q: 'flaky', name: 'n' }, ['probe name 1500', 'search_by_week']],
  [
    'words, another sort',
    { q: 'flaky', sort_by: 'title' },
    ['walk_sort 1000', 'walk_matches', 'walk_sort 20000', 'search_by_week'],
  ],
];

test.each(table)(
  'for a page with %s, the strategies of the table are tried in the order of the table',
  (_, given, expected) => {
    const strategies = strategiesFor(ListRunsQuery.parse(given), 'q' in given);
    expect(strategies.map(nameOf)).toEqual(expected);
  },
);
