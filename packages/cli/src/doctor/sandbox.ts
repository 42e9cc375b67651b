import type { Context } from '../context.ts';
import type { Finding } from './finding.ts';
export async function checkSandbox(_context: Context): Promise<Finding[]> {
  return [];
}
