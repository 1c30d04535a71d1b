#!/usr/bin/env python3
"""Writes types.json and docs.json from the Go sources of the Kubernetes API types.

    python3 extract.py DIR      # DIR holds k8s.io/api and k8s.io/apimachinery (Debian: golang-k8s-api-dev,
                                # golang-k8s-apimachinery-dev, both version 0.36.4);
                                # what is newer than 1.34 is left out again, see NEWER

Kubernetes is licensed under Apache-2.0; what is written here are its field names, markers and field
descriptions. The output has, by OpenAPI name, each type that is reachable from ROOTS:
  types.json  {name: {"fields": [FIELD...], "atomic": true?}}
    FIELD     n name, t type, p protobuf number, o omitted when empty, z omitted when zero, r required, ptr pointer in Go,
              ps patchStrategy, pk patchMergeKey, lt listType, lk listMapKeys, at atomic map or struct,
              def default, en enumeration, inl inlined in JSON (but a message in protobuf if p is there)
    type      string bool int32 int64 float64 bytes time microtime duration quantity intstr raw any,
              [T] list, {T} map, else the name of a type
  docs.json   {name: {"": description, field: description}}
"""
import json
import os
import re
import sys

PACKAGES = {
    "corev1": "api/core/v1", "appsv1": "api/apps/v1", "batchv1": "api/batch/v1",
    "coordinationv1": "api/coordination/v1", "eventsv1": "api/events/v1", "autoscalingv1": "api/autoscaling/v1",
    "autoscalingv2": "api/autoscaling/v2", "policyv1": "api/policy/v1",
    "authorizationv1": "api/authorization/v1", "authenticationv1": "api/authentication/v1",
    "metav1": "apimachinery/pkg/apis/meta/v1",
}
MODELS = {
    "api/": "io.k8s.api.", "apimachinery/pkg/apis/meta/v1": "io.k8s.apimachinery.pkg.apis.meta.v1.",
}
ROOTS = {
    "corev1": "Binding ConfigMap ConfigMapList Event EventList Namespace NamespaceList Node NodeList "
              "PersistentVolumeClaim PersistentVolumeClaimList Pod PodList ReplicationController "
              "ReplicationControllerList ResourceQuota ResourceQuotaList Secret SecretList ServiceAccount "
              "ServiceAccountList Service ServiceList",
    "appsv1": "ControllerRevision ControllerRevisionList DaemonSet DaemonSetList Deployment DeploymentList "
              "ReplicaSet ReplicaSetList StatefulSet StatefulSetList",
    "batchv1": "Job JobList", "coordinationv1": "Lease LeaseList", "eventsv1": "Event EventList",
    "autoscalingv1": "HorizontalPodAutoscaler HorizontalPodAutoscalerList Scale",
    "autoscalingv2": "HorizontalPodAutoscaler HorizontalPodAutoscalerList", "policyv1": "Eviction",
    "authorizationv1": "SelfSubjectAccessReview SelfSubjectRulesReview",
    "authenticationv1": "SelfSubjectReview", "metav1": "DeleteOptions Status",
}
SPECIAL = {
    "metav1.Time": "time", "metav1.MicroTime": "microtime", "metav1.Duration": "duration",
    "metav1.FieldsV1": "raw", "resource.Quantity": "quantity", "intstr.IntOrString": "intstr",
    "runtime.RawExtension": "raw", "runtime.Object": "raw", "types.UID": "string", "types.NodeName": "string",
    "metav1.Verbs": "[string]",
}
BASIC = {"string": "string", "bool": "bool", "int": "int64", "int32": "int32", "int64": "int64",
         "float64": "float64", "byte": "byte", "uint8": "byte"}
# Fields that came after the version of Kubernetes that the server announces, 1.34 (GIT_VERSION in
# server/endpoints.rs). All others were there already: the types were compared with k8s-openapi's v1_34.
NEWER = {
    "corev1.NodeStatus": ["declaredFeatures"],
    "corev1.PodCertificateProjection": ["userAnnotations"],
    "corev1.PodSpec": ["schedulingGroup"],
    "corev1.PodStatus": ["allocatedResources", "nodeAllocatableResourceClaimStatuses", "resources"],
    "corev1.ResourceHealth": ["message"],
    "corev1.VolumeMountStatus": ["volumeStatus"],
    "metav1.ListMeta": ["shardInfo"],
}
FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`([^`]*)`")


def model(package, name):
    path = PACKAGES[package]
    if path.startswith("api/"):
        return MODELS["api/"] + path[4:].replace("/", ".") + "." + name
    return MODELS[path] + name


def prose(comment):
    """Field descriptions as upstream's generator writes them: markers and TODOs left out, lines joined."""
    text, pending = [], ""
    for line in comment:
        line = line.strip()
        if line.startswith("---"):
            break
        if line.startswith(("TODO", "+")):
            continue
        if not line:
            if pending:
                text.append(pending)
            pending = ""
        else:
            pending = (pending + " " + line) if pending else line
    if pending:
        text.append(pending)
    return "\n\n".join(text).strip()


def markers(comment):
    found = {}
    for line in comment:
        line = line.strip()
        if line.startswith("+"):
            key, _, value = line[1:].partition("=")
            found.setdefault(key.strip(), []).append(value.strip())
    return found


class Source:
    def __init__(self, root):
        self.structs, self.aliases, self.enums, self.comments = {}, {}, {}, {}
        for package, path in PACKAGES.items():
            folder = os.path.join(root, "k8s.io", path)
            for name in sorted(os.listdir(folder)):
                if name.endswith(".go") and not name.endswith("_test.go") and "generated" not in name:
                    self.read(package, os.path.join(folder, name))

    def read(self, package, file):
        # An alias import of a sibling package is written the same way everywhere but for core.
        aliases = {}
        comment, struct = [], None
        text = open(file).read()
        for match in re.finditer(r'^\s*(\w+)?\s*"k8s.io/([^"]+)"', text, re.M):
            for known, path in PACKAGES.items():
                if match.group(2) == path:
                    aliases[match.group(1) or path.split("/")[-1]] = known
        for line in text.split("\n"):
            stripped = line.strip()
            if stripped.startswith("//"):
                comment.append(stripped[2:][1:] if stripped[2:].startswith(" ") else stripped[2:])
                continue
            if struct is None:
                start = re.match(r"^type (\w+) struct \{", line)
                alias = re.match(r"^type (\w+) (?!struct|interface|func)(\S+)", line)
                const = re.match(r'^(?:const)?\s*(\w+)\s+(\w+)\s*=\s*"([^"]*)"', line)
                if start:
                    struct = (package, start.group(1))
                    self.structs[struct] = []
                    self.comments[struct] = comment
                    if line.rstrip().endswith("}"):
                        struct = None
                elif alias:
                    self.aliases[(package, alias.group(1))] = self.qualify(package, alias.group(2), aliases)
                    self.comments[(package, alias.group(1))] = comment
                elif const:
                    self.enums.setdefault((package, const.group(2)), []).append(const.group(3))
            elif line.startswith("}"):
                struct = None
            else:
                field = FIELD.match(line)
                if field:
                    self.structs[struct].append((field.group(1), self.qualify(package, field.group(2), aliases),
                                                 field.group(3), comment))
            # A blank line parts a field's comment from one above it, such as that of a removed field.
            comment = []

    @staticmethod
    def qualify(package, go_type, aliases):
        def one(match):
            word = match.group(0)
            if "." in word:
                prefix, name = word.split(".")
                return aliases.get(prefix, prefix) + "." + name
            if word in BASIC or word == "map":
                return word
            return package + "." + word
        return re.sub(r"[A-Za-z_][\w]*(\.\w+)?", one, go_type)


class Extract:
    def __init__(self, source):
        self.source, self.types, self.docs = source, {}, {}

    def type_of(self, go_type):
        """(type in the output, is a pointer)"""
        if go_type.startswith("*"):
            return self.type_of(go_type[1:])[0], True
        if go_type == "[]byte":
            return "bytes", False
        if go_type.startswith("[]"):
            return "[" + self.type_of(go_type[2:])[0] + "]", False
        if go_type.startswith("map["):
            return "{" + self.type_of(go_type[go_type.index("]") + 1:])[0] + "}", False
        if go_type in SPECIAL:
            return SPECIAL[go_type], False
        if go_type in BASIC:
            return BASIC[go_type], False
        package, _, name = go_type.partition(".")
        if (package, name) in self.source.aliases:
            return self.type_of(self.source.aliases[(package, name)])[0], False
        self.struct(package, name)
        return model(package, name), False

    def struct(self, package, name):
        key = model(package, name)
        if key in self.types:
            return
        entry = self.types[key] = {"fields": []}
        docs = self.docs[key] = {"": prose(self.source.comments[(package, name)])}
        if "atomic" in markers(self.source.comments[(package, name)]).get("structType", []):
            entry["atomic"] = True
        for field_name, go_type, tags, comment in self.source.structs[(package, name)]:
            tag = dict(re.findall(r'(\w+):"([^"]*)"', tags))
            json_name, *options = tag.get("json", "").split(",")
            if json_name == "-" or "json" not in tag or json_name in NEWER.get(f"{package}.{name}", []):
                continue
            number = tag.get("protobuf", "").split(",")
            kind, pointer = self.type_of(go_type)
            field = {"n": json_name, "t": kind}
            if len(number) > 1:
                field["p"] = int(number[1])
            if "inline" in options:
                field["inl"] = True
                entry["fields"].append(field)
                continue
            marks = markers(comment)
            if "omitempty" in options or "omitzero" in options:
                field["z" if "omitzero" in options else "o"] = True
            elif "optional" not in marks:
                field["r"] = True
            if pointer:
                field["ptr"] = True
            for short, long in (("ps", "patchStrategy"), ("pk", "patchMergeKey")):
                if long in tag:
                    field[short] = tag[long]
            if "listType" in marks:
                field["lt"] = marks["listType"][0]
            if "listMapKey" in marks:
                field["lk"] = marks["listMapKey"]
            if "atomic" in marks.get("mapType", []) + marks.get("structType", []):
                field["at"] = True
            if "default" in marks:
                try:
                    field["def"] = json.loads(marks["default"][0])
                except ValueError:
                    pass
            enum = self.enum_of(go_type)
            if enum:
                field["en"] = enum
            entry["fields"].append(field)
            text = prose(comment)
            if text:
                docs[json_name] = text

    def enum_of(self, go_type):
        package, _, name = go_type.lstrip("*").partition(".")
        key = (package, name)
        if key in self.source.aliases and "enum" in markers(self.source.comments[key]):
            return sorted(set(self.source.enums.get(key, [])))
        return []


def main():
    source = Source(sys.argv[1])
    extract = Extract(source)
    for package, names in ROOTS.items():
        for name in names.split():
            extract.struct(package, name)
    folder = os.path.dirname(os.path.abspath(__file__))
    for file, data in (("types.json", extract.types), ("docs.json", extract.docs)):
        with open(os.path.join(folder, file), "w") as out:
            out.write("{\n")
            lines = [json.dumps(k) + ":" + json.dumps(v, separators=(",", ":"), ensure_ascii=False)
                     for k, v in sorted(data.items())]
            out.write(",\n".join(lines) + "\n}\n")


main()
