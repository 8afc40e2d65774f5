"""The CustomResourceDefinitions of the fleet (K8S-1), generated from the types that validate everywhere else."""

from fleet.kube.crds.definitions import GROUP, KINDS, VERSION, Definition, definitions, yaml_files

__all__ = ["GROUP", "KINDS", "VERSION", "Definition", "definitions", "yaml_files"]
