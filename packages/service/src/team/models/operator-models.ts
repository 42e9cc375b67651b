import { readOperatorFile } from '../../platform/operator-files/read-file.ts';
import { type CatalogueModel, catalogue, catalogueMadeOn, OperatorCatalogueFile, withEntry } from './catalogue.ts';

/** The catalogue with the models of the operator. `madeOn`: the date of the catalogue or of the operator's file, whichever is later. */
export type KnownModels =
  | { readonly ok: true; readonly models: readonly CatalogueModel[]; readonly madeOn: string }
  | { readonly ok: false; readonly problems: string[] };

const idOf = ({ provider, providerModel }: CatalogueModel): string => `${provider}/${providerModel}`;

/** Returns the catalogue, with the changes from RUNYARD_MODELS_FILE if this file is set. Each problem contains the line and the fault. */
export async function readKnownModels(file: string | undefined): Promise<KnownModels> {
  if (file === undefined) return { ok: true, models: catalogue, madeOn: catalogueMadeOn };
  const setting = 'RUNYARD_MODELS_FILE';
  const read = await readOperatorFile(setting, file, OperatorCatalogueFile);
  if (!read.ok) return read;
  const known = new Map(catalogue.map((model) => [idOf(model), model]));
  const seen = new Set<string>();
  for (const [index, entry] of read.value.models.entries()) {
    if (seen.has(entry.id)) {
      const problem = `${setting}: ${read.lineOf(['models', index, 'id'])}: another model of the file has this id`;
      return { ok: false, problems: [problem] };
    }
    seen.add(entry.id);
    known.set(entry.id, withEntry(known.get(entry.id), entry));
  }
  const [, madeOn = catalogueMadeOn] = [catalogueMadeOn, read.value.made_on ?? catalogueMadeOn].sort();
  return { ok: true, models: [...known.values()], madeOn };
}
