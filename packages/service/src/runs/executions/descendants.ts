/** SQL: the run `run` is a descendant of the run `ancestor`, at any depth. The index `runs_facets` finds it. */
export const isBelow = (run: string, ancestor: string): string =>
  `${run}.facets @> ARRAY[run_facet(${ancestor}.team_id, 'ancestor=' || ${ancestor}.id)]`;
