/** Sets environment variables during `work`. The AWS SDK, for example, reads its settings from there. */
export async function withVariables<T>(
  env: Readonly<Record<string, string | undefined>>,
  work: () => Promise<T>,
): Promise<T> {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  set(Object.entries(env));
  try {
    return await work();
  } finally {
    set(before);
  }
}

function set(values: readonly (readonly [string, string | undefined])[]): void {
  for (const [name, value] of values) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}
