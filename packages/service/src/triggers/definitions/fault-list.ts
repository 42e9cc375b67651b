import { collectFaults, type DefinitionFault, type Position } from '@runyard/contract/factories/files/faults';
import type { FactoryDefinition } from '@runyard/definitions/definition';

/** A definition whose files have no faults, and a function that finds the place of a member in these files. */
export interface LocatedDefinition {
  readonly definition: FactoryDefinition;
  readonly locate: (file: string, path: readonly (string | number)[]) => Position;
}

/** Collects the faults that only the service can find, because they depend on the team. */
export interface FaultList {
  add(file: string, path: readonly (string | number)[], message: string): void;
  count(): number;
  list(): DefinitionFault[];
}

export function makeFaultList({ locate }: LocatedDefinition): FaultList {
  const faults = collectFaults();
  return {
    add: (file, path, message) =>
      faults.add(
        file,
        locate(file, path),
        message,
        undefined,
        path[0] === 'triggers' ? 'FF_INVALID_TRIGGER' : 'FF_INVALID_VALUE',
      ),
    count: faults.count,
    list: faults.list,
  };
}
