/** Collects the SQL of a list, and its parameters. */
export interface Conditions {
  /** Joins of `FROM runs r`. */
  readonly joins: string[];
  /** All must hold. */
  readonly texts: string[];
  readonly values: unknown[];
  /** Adds a value and gives its placeholder. */
  bind(value: unknown): string;
}

/** `$1` is the team. */
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
