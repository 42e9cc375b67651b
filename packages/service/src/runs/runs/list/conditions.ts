/** Collects the conditions of a list as SQL, with their parameters. */
export interface Conditions {
  /** Joins of `FROM runs r`. */
  readonly joins: string[];
  /** All of them must be true. */
  readonly texts: string[];
  readonly values: unknown[];
  /** Adds a value and returns its placeholder. */
  bind(value: unknown): string;
}

/** Starts with the condition on the team, which is `$1`. */
export function startConditions(teamId: string): Conditions {
  const values: unknown[] = [teamId];
  return {
    joins: [],
    texts: ['r.team_id = $1'],
    values,
    bind: (value) => {
      values.push(value);
      return `$${values.length}`;
    },
  };
}
