/** The variables that conditions and templates may read, and no others. One that is not set is absent. */
export function listedEnv(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const listed: Record<string, string> = Object.create(null)
  for (const name of names) if (env[name] !== undefined) listed[name] = env[name]
  return listed
}
